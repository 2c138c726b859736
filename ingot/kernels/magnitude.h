#pragma once

#include "ingot/base/view.h"
#include "ingot/device/on_device.h"

namespace ingot::kernels {

// Reductions of dense x, any floating-point dtype, in a fixed order: blocks of a fixed size, whose
// results are added in sequence. The value does not depend on the number of threads.

// total = Σ x², in f64. Not finite if any x is not.
void sum_of_squares(const Cpu& on, const ConstView& x, double& total);
// most = max |x|; NaN if any x is.
void largest_magnitude(const Cpu& on, const ConstView& x, double& most);

// y = √Σ x²; x dense, y one f32 or f64.
void norm(const Cpu& on, const ConstView& x, const View& y);

}  // namespace ingot::kernels
