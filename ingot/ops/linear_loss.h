#pragma once

#include <functional>

#include "ingot/tensor/tensor.h"

namespace ingot {

// A loss of the logits of rows [begin, end), made of operations: a scalar [], a sum over its rows.
// logits: [end − begin, V], f32 (f64 for f64)
using LogitLoss = std::function<Tensor(const Tensor& logits, int64_t begin, int64_t end)>;

// The sum of a loss over all rows of logits x Wᵀ (cap · tanh(x Wᵀ / cap) where softcap is not 0),
// taken piece by piece: neither the logits nor their gradient ever exist whole. x: [N, D]
// weight: [V, D] → []. For losses that have no kernel of their own, such as the divergence from
// another model's distribution. Gradients are computed in the forward and only scaled in the
// backward. Differentiable once.
Tensor sum_over_logits(const Tensor& x, const Tensor& weight, const LogitLoss& loss,
                       double softcap = 0);

}  // namespace ingot
