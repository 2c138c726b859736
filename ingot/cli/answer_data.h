#pragma once

#include <filesystem>

#include "ingot/cli/run_data.h"

namespace ingot {

// What runs on prompts with answers read: pairs of a chosen and a rejected answer, or answers that
// are wanted or not. All of them are in memory as tokens. Rows longer than train.sequence are
// treated as data.long says (dropped, cut, or an error; they cannot be split). A row is held out by
// a hash of its content. Errors are those of reading rows, with file and line.

// Pairs: the chosen answers of a batch, then the rejected ones. Its rows are 2 a pair.
RunData open_pairs(Recipe& recipe, const std::filesystem::path& cache);
// The same with every token as an input, for scores of whole answers; columns["margin"] where the
// recipe asks for the rows' scores.
RunData open_scored_pairs(Recipe& recipe, const std::filesystem::path& cache);
// Answers with labels (pairs are taken apart): the answers of a batch, then the same prompts each
// with the answer of another row. Its rows are 2 an answer.
RunData open_labelled(Recipe& recipe, const std::filesystem::path& cache);

}  // namespace ingot
