#pragma once

#include "ingot/tensor/tensor.h"

namespace ingot {

// y = (x − mean x) / √(var x + ε) · weight + bias, over the last dimension D; var is the biased
// variance. x: [..., D]   weight, bias: [D] or undefined. Statistics in f32 (f64 for f64). Ba,
// Kiros & Hinton 2016.
Tensor layer_norm(const Tensor& x, const Tensor& weight, const Tensor& bias, double eps);

// y = x / √(mean x² + ε) · weight, over the last dimension.   weight: [D] or undefined. Zhang &
// Sennrich 2019.
Tensor rms_norm(const Tensor& x, const Tensor& weight, double eps);

// The same of s = x + residual, in one pass over memory; both are needed by a pre-norm block.
struct NormedSum {
  Tensor normed;  // norm(x + residual)
  Tensor sum;     // x + residual
};
NormedSum add_rms_norm(const Tensor& x, const Tensor& residual, const Tensor& weight, double eps);
NormedSum add_layer_norm(const Tensor& x, const Tensor& residual, const Tensor& weight,
                         const Tensor& bias, double eps);

}  // namespace ingot
