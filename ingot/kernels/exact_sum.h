#pragma once

#include "ingot/base/view.h"
#include "ingot/device/on_device.h"

namespace ingot::kernels {

// Order-free sums, element by element: base/exact_sum.h. sums: i64 [N, 2], an ExactSum a row, zeros
// at the start.

// sums += x;  x: [N] f32 or f64, dense
void add_exactly(const Cpu& on, const ConstView& x, const View& sums);
// y = sums, rounded;  y: [N] f32 or f64, dense
void exact_values(const Cpu& on, const ConstView& sums, const View& y);

}  // namespace ingot::kernels
