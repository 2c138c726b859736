// The smallest operation; copy this. Its kernel is the struct Relu of kernels/cpu/unary-inl.h, its
// declaration stands in ops/elementwise.h, its test in tests/ops/unary_test.cpp.

#include "ingot/kernels/elementwise.h"
#include "ingot/ops/elementwise.h"
#include "ingot/ops/shape.h"
#include "ingot/ops/unary.h"
#include "ingot/tensor/factories.h"

namespace ingot {

// y = max(x, 0); dx = dy where y > 0, else 0.
Tensor relu(const Tensor& x) {
  return unary("relu", {kernels::Unary::relu}, x, [](const Tensor& y) {
    return cast(greater(y, scalar(0, y.dtype(), y.device())), y.dtype());
  });
}

}  // namespace ingot
