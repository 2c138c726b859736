#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "ingot/data/batch.h"

namespace ingot {

// A prompt with an answer, as tokens; learnt[t] is 1 for tokens of the answer.
struct AnswerRow {
  std::vector<int64_t> ids;
  std::vector<uint8_t> learnt;

  int64_t answer_tokens() const;  // learnt ones that have a token before them
};

// A row of this prompt and answer.
AnswerRow answer_row(std::span<const int64_t> prompt, std::span<const int64_t> answer);

// Rows as a batch of as many columns as the longest needs, rounded up to a multiple of 16: labels
// are the answers' tokens, shifted; padding has id 0 and no label. Throws Error(argument) for a row
// whose answer has no token, or of more than `longest` inputs.
Batch answer_batch(std::span<const AnswerRow> rows, int64_t longest);

// The same for scores of whole answers: every token is an input, and columns["ends"] [B] i64 says
// which is each row's last.
Batch scored_batch(std::span<const AnswerRow> rows, int64_t longest);

}  // namespace ingot
