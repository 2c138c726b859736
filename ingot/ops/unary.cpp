#include "ingot/ops/unary.h"

#include "ingot/autograd/record.h"
#include "ingot/device/on_device.h"
#include "ingot/ops/elementwise.h"
#include "ingot/tensor/factories.h"

namespace ingot {
namespace {

Tensor backward_of(const kernels::UnaryCall& call, const Tensor& dy, const Tensor& kept,
                   const Slope& slope) {
  if (recording()) {
    return dy * slope(kept);
  }
  Tensor dx = empty(dy.shape(), dy.dtype(), dy.device());
  on_device(dy.device(), [&](const auto& on) {
    kernels::unary_backward(on, call, dy.view(), kept.view(), dx.fresh_view());
  });
  return dx;
}

}  // namespace

Tensor unary(const char* op, const kernels::UnaryCall& call, const Tensor& x, const Slope& slope) {
  check(is_float(x.dtype()), ErrorKind::dtype, op, ": takes floating-point tensors: got ",
        x.dtype());
  Tensor y = empty(x.shape(), x.dtype(), x.device());
  on_device(x.device(),
            [&](const auto& on) { kernels::unary(on, call, x.view(), y.fresh_view()); });
  if (kernels::keeps(call.f) == kernels::Keeps::result) {
    return record(op, y, wrt(x, [call, slope](const Tensor& dy, const Tensor& kept) {
                    return backward_of(call, dy, kept, slope);
                  }));
  }
  return record(op, y, wrt(x, [call, slope, x = saved(x)](const Tensor& dy) {
                  return backward_of(call, dy, x(), slope);
                }));
}

}  // namespace ingot
