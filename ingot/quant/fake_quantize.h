#pragma once

#include <cstdint>

#include "ingot/tensor/tensor.h"

namespace ingot::quant {

// Rounding within training, with gradients. All take f32 and f64, of any shape.

// The nearest whole number, halves to even. The gradient passes as if nothing were rounded
// ("straight through": Bengio, Léonard, Courville 2013, arXiv:1308.3432).
Tensor nearest_integer(const Tensor& x);

// The values in the place of x with x's gradient: values is taken as a constant.
Tensor in_place_of(const Tensor& x, const Tensor& values);

// y = (clip(round(x / scale) + zero, low, high) − zero) · scale; dx = dy where the code before
// clipping lies in [low, high], else 0. Jacob et al. 2018, arXiv:1712.05877, section 3. Throws
// Error(argument) unless scale > 0 and low < high.
Tensor fake_quantized(const Tensor& x, double scale, int64_t zero, int64_t low, int64_t high);

}  // namespace ingot::quant
