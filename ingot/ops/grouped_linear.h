#pragma once

#include "ingot/tensor/tensor.h"

namespace ingot {

// One linear map for each range of rows: with starts s_0 = 0, s_{e+1} = s_e + counts_e,
//   y_n = x_n W_eᵀ   for s_e ≤ n < s_{e+1}
// x: [N, In]   weights: E of [Out, In]   counts: [E] i64 ≥ 0, which sum to N   y: [N, Out]
// No row is copied or padded: each range is one matrix product in place. Gradients of weights come
// in accumulator(dtype), zeros for a range without rows. FLOPs counted: 2·N·In·Out and twice that
// backward, whatever the counts. Differentiable once. Gale et al. 2022, arXiv:2211.15841
// ("dropless").
Tensor grouped_linear(const Tensor& x, const TensorList& weights, const Tensor& counts);

// Several of them on the same rows, y_i by weights[i]; the backward sums dx in place.
TensorList grouped_linears(const Tensor& x, const std::vector<TensorList>& weights,
                           const Tensor& counts);

}  // namespace ingot
