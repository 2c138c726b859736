#pragma once

#include "ingot/base/philox.h"
#include "ingot/base/view.h"
#include "ingot/device/on_device.h"

namespace ingot::kernels {

// y_i = keep_i · x_i / (1 − p), where keep_i is whether element i of the key's uniform stream is at
// least p. x, y dense, of one floating-point dtype.
void dropout(const Cpu& on, const ConstView& x, double p, const RandomKey& key, const View& y);

}  // namespace ingot::kernels
