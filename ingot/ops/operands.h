#pragma once

#include "ingot/tensor/layout.h"
#include "ingot/tensor/tensor.h"

namespace ingot {

// Throws Error(dtype) or Error(device) unless a and b can meet in one operation.
inline void check_operands(const char* op, const Tensor& a, const Tensor& b) {
  check(a.dtype() == b.dtype(), ErrorKind::dtype, op, ": dtypes differ: a is ", a.dtype(),
        ", b is ", b.dtype(), "; cast one of them");
  check(a.device() == b.device(), ErrorKind::device, op, ": devices differ: a is on ", a.device(),
        ", b is on ", b.device());
}

// x as a kernel sees it when broadcast to `shape`: repeated elements have stride 0.
inline ConstView spread(const Tensor& x, const Shape& shape) { return expanded(x, shape).view(); }

}  // namespace ingot
