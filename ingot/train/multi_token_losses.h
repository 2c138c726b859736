#pragma once

#include <vector>

#include "ingot/ops/cross_entropy.h"
#include "ingot/train/objective.h"

namespace ingot {

// labels[b, t + k] at [b, t]; ignored_label beyond the end and where another document stands.
// labels: [B, T] i64; documents: [B, T] i32 or undefined
Tensor labels_ahead(const Tensor& labels, const Tensor& documents, int64_t k);

// Adds weight/K · Σ_k (the cross-entropies of head k's tokens) to `loss`, a sum over loss.count
// tokens; so each head's loss is divided by the same number of tokens as the next token's, as in
// DeepSeek-AI 2024, arXiv:2412.19437, equations 24 and 25. further: K times [B, T, D], the k-th
// (from 1) of the token k + 1 ahead. Adds each sum to the metrics (mtp_loss_1, …).
void add_multi_token_losses(Loss& loss, const std::vector<Tensor>& further,
                            const Tensor& output_weight, const Batch& batch, double weight,
                            const CrossEntropyOptions& options);

}  // namespace ingot
