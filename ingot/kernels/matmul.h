#pragma once

#include <span>

#include "ingot/base/view.h"
#include "ingot/device/on_device.h"

namespace ingot::kernels {

// Whether matmul reads matrices laid out like this in place: rows or columns are contiguous and do
// not overlap. Others have to be copied first.
bool matmul_reads(const Shape& shape, const Strides& strides);

enum class Accumulate : bool { no, yes };

// y = a b, or y += a b.   a: [B, M, K] (or [M, K])   b: [B, K, N]   y: [B, M, N]
// a and b of one dtype (f32, bf16, f16, f64); y of that dtype or f32. One of the last two strides
// of a and of b must be 1: transposed operands are read in place; batch strides are free (0
// broadcasts). Sums in f32 (f64 for f64), rounded once. bias: [N] or data == nullptr, added to
// every row.
void matmul(const Cpu& on, const ConstView& a, const ConstView& b, const View& y,
            Accumulate accumulate = Accumulate::no, const ConstView& bias = {});

// y_i = a b_i [+ bias_i] for several b of one a, which few rows of a read in one go.
struct Factor {
  ConstView b;
  View y;
  ConstView bias;
};
void matmuls(const Cpu& on, const ConstView& a, std::span<const Factor> factors);

}  // namespace ingot::kernels
