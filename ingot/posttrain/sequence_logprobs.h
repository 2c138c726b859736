#pragma once

#include "ingot/tensor/tensor.h"

namespace ingot {

// The log-probabilities that a model gives to answers: what every preference loss is a function of.

// Of B answers. One that has no token has sum 0 and length 0.
struct SequenceLogprobs {
  Tensor sums;     // [B] Σ_t log p(y_t | x, y_<t) over the tokens of the answer, with history
  Tensor lengths;  // [B] how many they are, in the type of sums, without history

  Tensor means() const;  // [B] sums / lengths
};

// log p of every label, [B, T], 0 where the label is ignored. hidden: [B, T, D]   head: [V, D]
// labels: [B, T] i64, shifted already (data/batch.h). f32 for half types. No logits are made for
// ignored labels, and those of the others never exist whole (ops/cross_entropy.h).
Tensor token_logprobs(const Tensor& hidden, const Tensor& head, const Tensor& labels,
                      double softcap = 0);

// Their sums and numbers per row. Rafailov et al. 2023, arXiv:2305.18290, section 4.
SequenceLogprobs sequence_logprobs(const Tensor& hidden, const Tensor& head, const Tensor& labels,
                                   double softcap = 0);

// Rows [begin, end) of both.
SequenceLogprobs rows_of(const SequenceLogprobs& all, int64_t begin, int64_t end);

}  // namespace ingot
