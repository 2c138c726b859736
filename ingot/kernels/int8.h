#pragma once

#include "ingot/base/view.h"
#include "ingot/device/on_device.h"

namespace ingot::kernels {

// Weights in 8 bits: w[n, k] ≈ scale[n, k / G] · code[n, k], G = int8_group features of a row
// sharing a scale (the last group of a row may be shorter), code in [−127, 127].
//   codes: [N, K] i8   scales: [N, ⌈K / G⌉] f32, both dense
inline constexpr int64_t int8_group = 64;
constexpr int64_t int8_groups(int64_t features) { return (features + int8_group - 1) / int8_group; }

// scale = max |w| / 127 over the group, code = w / scale rounded to nearest. A group of zeros has
// scale 0; one with a value that is not finite has scale NaN, and so have products with it.
// w: [N, K] f32, bf16 or f16, dense.
void int8_encode(const Cpu& on, const ConstView& w, const View& codes, const View& scales);

// out = scale · code: [N, K] of any floating-point type, dense.
void int8_decode(const Cpu& on, const ConstView& codes, const ConstView& scales, const View& out);

// The same with one scale a row: x: [N, K] f32, bf16 or f16   codes: [N, K] i8   scales: [N] f32
void int8_encode_rows(const Cpu& on, const ConstView& x, const View& codes, const View& scales);
void int8_decode_rows(const Cpu& on, const ConstView& codes, const ConstView& scales,
                      const View& out);

// y = x Wᵀ [+ bias], x: [M, K] and y: [M, N] of one type (f32, bf16, f16), dense, for a few rows x:
// reads each weight from memory once. Sums in f32, rounded once. bias: [N] or data == nullptr. A
// row of y does not depend on how many there are.
void int8_few_rows(const Cpu& on, const ConstView& x, const ConstView& codes,
                   const ConstView& scales, const ConstView& bias, const View& y);

}  // namespace ingot::kernels
