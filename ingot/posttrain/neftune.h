#pragma once

#include "ingot/base/philox.h"
#include "ingot/tensor/tensor.h"

namespace ingot {

// Noisy embeddings: x + ε with ε uniform in ±α/√(L·D), L the length of the token's document. Jain
// et al. 2023, "NEFTune: Noisy embeddings improve instruction finetuning", arXiv:2310.05914,
// algorithm 1. x: [B, T, D]   documents: [B, T] i32, or undefined for one document a row. The noise
// is a function of key and place, so that recomputing and resuming repeat it.
Tensor with_embedding_noise(const Tensor& x, const Tensor& documents, double alpha,
                            const RandomKey& key);

}  // namespace ingot
