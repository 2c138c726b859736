#pragma once

#include "ingot/base/philox.h"
#include "ingot/base/view.h"
#include "ingot/device/on_device.h"

namespace ingot::kernels {

// One of the two kernel families that interpret strides (the other is elementwise). Shapes must be
// equal; any strides, any two dtypes. Conversions round to nearest; float to integer truncates.

// y[i] = x[i]
void copy(const Cpu& on, const ConstView& x, const View& y);
// y[i] += x[i], added in accumulator(y.dtype) and rounded once
void accumulate(const Cpu& on, const ConstView& x, const View& y);
// y[i] = value
void fill(const Cpu& on, double value, const View& y);

// y[i] = a function of the key and of the row-major index i. y dense and floating-point.
void fill_uniform(const Cpu& on, double low, double high, const RandomKey& key, const View& y);
void fill_normal(const Cpu& on, double mean, double deviation, const RandomKey& key, const View& y);

}  // namespace ingot::kernels
