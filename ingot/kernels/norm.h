#pragma once

#include "ingot/base/view.h"
#include "ingot/device/on_device.h"

namespace ingot::kernels {

// Rows of the last dimension D of N rows, all dense. x, residual, sum, y, weight, bias, dy, dx are
// of one floating-point dtype; statistics and the gradients of weight and bias in
// accumulator(dtype). A view without data is absent.
struct NormForward {
  ConstView x;             // [N, D]
  ConstView residual;      // [N, D] or absent: then the sum s is x itself
  ConstView weight, bias;  // [D] or absent: 1 and 0
  View sum;                // [N, D]: s = x + residual, where there is a residual
  View y;                  // [N, D]
  View mean, rstd;         // [N] each, for the backward; rms_norm has no mean
  double eps = 0;
  double gain_offset = 0;  // a in rms_norm: gains are stored as their difference from it
};

// y = (s − m) r w + b with m = mean s, r = 1 / √(mean (s − m)² + ε)
void layer_norm(const Cpu& on, const NormForward& args);
// y = s r (a + w) with r = 1 / √(mean s² + ε)
void rms_norm(const Cpu& on, const NormForward& args);

struct NormBackward {
  ConstView sum;         // [N, D]: what was normalised
  ConstView weight;      // [D] or absent
  ConstView mean, rstd;  // [N], from the forward
  ConstView dy;          // [N, D]
  ConstView dsum;        // [N, D] or absent: a gradient that reached s directly
  View dx;               // [N, D]
  View dweight, dbias;   // [D] or absent
  double gain_offset = 0;
};

// With n = (s − m) r and g = dy · w, for rms_norm dy · (a + w):
//   dx = r (g − mean g − n mean(g n)) + dsum    dweight = Σ_rows dy n    dbias = Σ_rows dy
void layer_norm_backward(const Cpu& on, const NormBackward& args);
//   dx = r (g − n mean(g n)) + dsum             dweight = Σ_rows dy n
void rms_norm_backward(const Cpu& on, const NormBackward& args);

}  // namespace ingot::kernels
