#pragma once

#include <cstdint>

#include "ingot/tensor/tensor.h"

namespace ingot {

// Tokens that a tokenizer was given after the model had been trained.
struct AddedRows {
  int64_t first = 0;  // the id of the first
  int64_t count = 0;
};

// A table of `vocab` rows for `table` ([V, D] f32, an embedding or the output map) in which the
// added rows are the mean of the rows before them. Rows that are longer vectors than any that was
// trained would draw all probability to new tokens; at the mean of the output map a new token's
// logit is the mean of all logits, so the loss of other tokens grows by at most log(1 + count/V)
// (Hewitt 2021, "Initializing new word embeddings for pretrained language models"). Rows of `table`
// beyond the added ones stay; `vocab` may be larger than V. Throws Error(argument) where the rows
// do not follow trained ones.
Tensor with_added_rows(const Tensor& table, int64_t vocab, const AddedRows& added);

}  // namespace ingot
