#pragma once

#include "ingot/ops/cross_entropy.h"

namespace ingot {

// KL(p ‖ q) = Σ_v p_v (log p_v − log q_v) per row of the last dimension, from logits of both; terms
// with p_v = 0 are 0. p_logits, q_logits: [..., V] → [...] . Gradients to both.
Tensor kl_divergence(const Tensor& p_logits, const Tensor& q_logits);

// mean or sum of (a − b)².
Tensor mse(const Tensor& a, const Tensor& b, Reduction reduction);

// a·b / max(|a| |b|, ε) over the last dimension: [...]; 0 where a vector is zero.
Tensor cosine_similarity(const Tensor& a, const Tensor& b, double eps = 1e-8);

}  // namespace ingot
