#pragma once

#include "ingot/base/view.h"
#include "ingot/device/on_device.h"

namespace ingot::kernels {

// y[n, :] = weight[ids[n], :].   weight: [V, D]   ids: [N] i64   y: [N, D]; all dense, weight and y
// of one floating-point dtype, ids in [0, V).
void embedding(const Cpu& on, const ConstView& weight, const ConstView& ids, const View& y);

// dweight[ids[n], :] += dy[n, :] for n = 0, 1, … in that order, so repeated ids add up the same way
// in every run. dweight: [V, D] of accumulator(dy.dtype), whose contents are kept. Split by
// columns, not rows: no partial sums.
void embedding_backward(const Cpu& on, const ConstView& ids, const ConstView& dy,
                        const View& dweight);

}  // namespace ingot::kernels
