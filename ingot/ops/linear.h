#pragma once

#include <optional>

#include "ingot/tensor/tensor.h"

namespace ingot {

// y = x Wᵀ + b.   x: [..., In]   weight: [Out, In]   bias: [Out] or undefined   y: [..., Out]
// The gradients of weight and bias come in accumulator(dtype): f32 for half-precision weights.
Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias = {});

// Several linear maps of one input, y_i = x W_iᵀ + b_i, whose backward sums the input's gradient in
// place. `biases` is empty or has one entry (maybe undefined) per weight.
TensorList linears(const Tensor& x, const TensorList& weights, const TensorList& biases = {});

// y + x Wᵀ: what adapters add to the result of a map. y: [..., Out] of x's leading dimensions.
// Where nothing else holds the memory of y it is added to in place, so give y away:
// add_linear(move(y), …).
Tensor add_linear(Tensor y, const Tensor& x, const Tensor& weight);

}  // namespace ingot
