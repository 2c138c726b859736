#pragma once

#include "ingot/base/view.h"
#include "ingot/device/on_device.h"

namespace ingot::kernels {

// Row-wise over the last dimension; x, y dense, of one floating-point dtype; sums in f32 (f64 for
// f64).

// y_d = exp(x_d − max x) / Σ_e exp(x_e − max x)
void softmax(const Cpu& on, const ConstView& x, const View& y);
// y_d = x_d − max x − log Σ_e exp(x_e − max x)
void log_softmax(const Cpu& on, const ConstView& x, const View& y);

}  // namespace ingot::kernels
