#pragma once

#include "ingot/base/philox.h"
#include "ingot/base/view.h"
#include "ingot/device/on_device.h"

namespace ingot::kernels {

// y_i = x_i / (1 − p) where word i of Philox(key) ≥ p 2³², else 0.   0 ≤ p < 1; x and y dense, of
// one floating-point dtype; they may be the same memory.
void dropout(const Cpu& on, const ConstView& x, double p, const RandomKey& key, const View& y);

}  // namespace ingot::kernels
