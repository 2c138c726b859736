// Comparisons and where, of ops/elementwise.h.

#include "ingot/autograd/record.h"
#include "ingot/device/on_device.h"
#include "ingot/kernels/elementwise.h"
#include "ingot/ops/elementwise.h"
#include "ingot/ops/operands.h"
#include "ingot/ops/shape.h"
#include "ingot/tensor/factories.h"

namespace ingot {
namespace {

using kernels::Comparison;

Tensor compared(const char* op, Comparison f, const Tensor& a, const Tensor& b) {
  check_operands(op, a, b);
  const Shape shape = broadcast(a.shape(), b.shape(), op);
  Tensor y = empty(shape, DType::bool_, a.device());
  on_device(a.device(), [&](const auto& on) {
    kernels::compare(on, f, spread(a, shape), spread(b, shape), y.fresh_view());
  });
  return y;
}

Tensor zero_like(const Tensor& x) { return scalar(0, x.dtype(), x.device()); }

}  // namespace

Tensor equal(const Tensor& a, const Tensor& b) {
  return compared("equal", Comparison::equal, a, b);
}
Tensor not_equal(const Tensor& a, const Tensor& b) {
  return compared("not_equal", Comparison::not_equal, a, b);
}
Tensor less(const Tensor& a, const Tensor& b) { return compared("less", Comparison::less, a, b); }
Tensor less_equal(const Tensor& a, const Tensor& b) {
  return compared("less_equal", Comparison::less_equal, a, b);
}
Tensor greater(const Tensor& a, const Tensor& b) {
  return compared("greater", Comparison::less, b, a);
}
Tensor greater_equal(const Tensor& a, const Tensor& b) {
  return compared("greater_equal", Comparison::less_equal, b, a);
}

Tensor where(const Tensor& condition, const Tensor& a, const Tensor& b) {
  check(condition.dtype() == DType::bool_, ErrorKind::dtype,
        "where: the condition must be bool: got ", condition.dtype());
  check_operands("where", a, b);
  check(condition.device() == a.device(), ErrorKind::device,
        "where: devices differ: condition is on ", condition.device(), ", a is on ", a.device());
  const Shape shape =
      broadcast(condition.shape(), broadcast(a.shape(), b.shape(), "where"), "where");
  Tensor y = empty(shape, a.dtype(), a.device());
  on_device(a.device(), [&](const auto& on) {
    kernels::where(on, spread(condition, shape), spread(a, shape), spread(b, shape),
                   y.fresh_view());
  });
  return record(
      "where", y,
      wrt(a, [c = saved(condition), shape = a.shape()](
                 const Tensor& dy) { return sum_to(where(c(), dy, zero_like(dy)), shape); }),
      wrt(b, [c = saved(condition), shape = b.shape()](const Tensor& dy) {
        return sum_to(where(c(), zero_like(dy), dy), shape);
      }));
}

}  // namespace ingot
