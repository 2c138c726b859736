#pragma once

#include <vector>

#include "ingot/cli/recipe.h"
#include "ingot/data/batch.h"
#include "ingot/models/decoder.h"

namespace ingot {

// The batch with the answers of a share of its rows written by the model itself: each prompt
// continued up to one of `stops` or answer_tokens, at temperature 1. Which rows, and what is drawn,
// is a function of the model's randomness. Agarwal et al. 2024, arXiv:2306.13649, algorithm 1. In
// evaluation and on the meta device the batch is left as it is. Throws Error(config) for packed
// rows.
Batch on_policy_batch(const Decoder& model, const Batch& batch, const DistillRun& config,
                      const std::vector<int64_t>& stops);

// Puts tokens in front of what a teacher reads of every row (columns "teacher_ids" and
// "teacher_labels"), behind a first token that begins a text. None: changes nothing.
struct TeacherContext {
  std::vector<int64_t> tokens;
  int64_t begin = -1;  // the token that begins a text, or −1
};
void add_context(Batch& batch, const TeacherContext& context);

}  // namespace ingot
