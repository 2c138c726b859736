#pragma once

#include "ingot/base/view.h"
#include "ingot/device/on_device.h"

namespace ingot::kernels {

// y_n = Σ_m x_mn, the gradient of a bias.   x: [M, N] dense, floating-point   y: [N] dense, of
// accumulator(x.dtype). Summed in y's type, in an order that depends on M alone.
void column_sum(const Cpu& on, const ConstView& x, const View& y);

}  // namespace ingot::kernels
