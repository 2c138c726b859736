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

}  // namespace ingot
