#pragma once

#include "ingot/tensor/tensor.h"

namespace ingot {

// y = (x − mean x) / √(var x + ε) · weight + bias, over the last dimension D; var is the biased
// variance. x: [..., D]   weight, bias: [D] or undefined. Statistics in f32 (f64 for f64). Ba,
// Kiros & Hinton 2016.
Tensor layer_norm(const Tensor& x, const Tensor& weight, const Tensor& bias, double eps);

// y = x / √(mean x² + ε) · (a + weight), over the last dimension, a the gain_offset: gains may be
// stored as their difference from it (Gemma: from 1).   weight: [D] or undefined (a gain of 1).
// Zhang & Sennrich 2019.
Tensor rms_norm(const Tensor& x, const Tensor& weight, double eps, double gain_offset = 0);

// The same of s = x + residual, in one pass over memory; both are needed by a pre-norm block.
struct NormedSum {
  Tensor normed;  // norm(x + residual)
  Tensor sum;     // x + residual
};
NormedSum add_rms_norm(const Tensor& x, const Tensor& residual, const Tensor& weight, double eps,
                       double gain_offset = 0);
NormedSum add_layer_norm(const Tensor& x, const Tensor& residual, const Tensor& weight,
                         const Tensor& bias, double eps);

}  // namespace ingot
