#pragma once

#include "ingot/tensor/tensor.h"

namespace ingot {

struct ConvOptions {
  int64_t stride = 1, padding = 0, dilation = 1, groups = 1;
};

// Cross-correlation, as every deep-learning library means by convolution; through oneDNN for f32
// and bf16. x: [B, Cin, L]   weight: [Cout, Cin/groups, W]   bias: [Cout] or undefined   y: [B,
// Cout, L']
Tensor conv1d(const Tensor& x, const Tensor& weight, const Tensor& bias = {},
              const ConvOptions& options = {});
// x: [B, Cin, Y, X]   weight: [Cout, Cin/groups, Hy, Hx]
Tensor conv2d(const Tensor& x, const Tensor& weight, const Tensor& bias = {},
              const ConvOptions& options = {});

}  // namespace ingot
