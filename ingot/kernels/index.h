#pragma once

#include "ingot/base/view.h"
#include "ingot/device/on_device.h"

namespace ingot::kernels {

// Everything is dense. x is [A, N, B], index (i64 or i32) [A, M, B] or as said. The kernels do not
// check indices: call first_outside before.

// The first position (row-major) whose index is outside [0, size), or −1.
int64_t first_outside(const Cpu& on, const ConstView& index, int64_t size);

// y[a, m, b] = x[a, index[a, m, b], b]; any dtype.
void gather(const Cpu& on, const ConstView& x, const ConstView& index, const View& y);
// y[a, index[a, m, b], b] += source[a, m, b], in the order of m; source [A, M, B] floating-point or
// i64, y of accumulator(source.dtype).
void scatter_add(const Cpu& on, const ConstView& index, const ConstView& source, const View& y);

// y[a, m, :] = x[a, index[m], :]; index [M]; any dtype.
void select(const Cpu& on, const ConstView& x, const ConstView& index, const View& y);
// y[a, index[m], :] += source[a, m, :], in the order of m; dtypes as scatter_add.
void select_add(const Cpu& on, const ConstView& index, const ConstView& source, const View& y);

// y[r, index[r]] = 1; y [R, N] holds zeros; any dtype.
void one_hot(const Cpu& on, const ConstView& index, const View& y);

// The first k of each row of x [R, N] in order, NaN last: values [R, K] and where they were, i64
// [R, K]. Equal elements keep their order. Any dtype. descending puts the largest first (NaN still
// last).
void sort(const Cpu& on, const ConstView& x, bool descending, const View& values,
          const View& indices);

}  // namespace ingot::kernels
