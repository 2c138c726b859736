#pragma once

#include <array>

#include "ingot/base/view.h"
#include "ingot/device/on_device.h"

namespace ingot::kernels {

// Steps of a convolution along Y and X; padding is the same on both sides.
struct ConvSteps {
  std::array<int64_t, 2> stride{1, 1};
  std::array<int64_t, 2> padding{0, 0};
  std::array<int64_t, 2> dilation{1, 1};
  int64_t groups = 1;
};

// Cross-correlation over two dimensions and its two gradients. Everything is dense; sums in f32
// (f64 for f64).
//   y[b, o, i, j] = Σ_{c, p, q} x[b, c, i sᵧ + p dᵧ − pᵧ, j sₓ + q dₓ − pₓ] w[o, c, p, q] + bias[o]
// x: [B, C, Y, X]   w: [O, C/groups, P, Q]   y: [B, O, Y', X']   bias: [O] or data == nullptr, all
// of one dtype; output channels of a group see its input channels only.
void conv(const Cpu& on, const ConstView& x, const ConstView& w, const ConstView& bias,
          const ConvSteps& steps, const View& y);
// dx from dy and w, all of one dtype.
void conv_input_gradient(const Cpu& on, const ConstView& dy, const ConstView& w,
                         const ConvSteps& steps, const View& dx);
// dw from dy and x; dw of accumulator(dy.dtype).
void conv_weight_gradient(const Cpu& on, const ConstView& dy, const ConstView& x,
                          const ConvSteps& steps, const View& dw);

}  // namespace ingot::kernels
