#include "ingot/ops/softmax.h"

#include "ingot/autograd/record.h"
#include "ingot/device/on_device.h"
#include "ingot/kernels/softmax.h"
#include "ingot/ops/elementwise.h"
#include "ingot/ops/reduce.h"
#include "ingot/ops/shape.h"
#include "ingot/tensor/factories.h"

namespace ingot {
namespace {

void check_input(const char* op, const Tensor& x) {
  check(is_float(x.dtype()), ErrorKind::dtype, op, ": takes floating-point tensors: got ",
        x.dtype());
  check(x.rank() >= 1, ErrorKind::shape, op, ": takes at least one dimension: got a scalar");
}

}  // namespace

Tensor softmax(const Tensor& input) {
  check_input("softmax", input);
  const Tensor x = contiguous(input);
  Tensor y = empty(x.shape(), x.dtype(), x.device());
  on_device(x.device(), [&](const auto& on) { kernels::softmax(on, x.view(), y.fresh_view()); });
  return record("softmax", y, wrt(x, [](const Tensor& dy, const Tensor& out) {
                  return out * (dy - sum(dy * out, -1, Keep::yes));
                }));
}

Tensor log_softmax(const Tensor& input) {
  check_input("log_softmax", input);
  const Tensor x = contiguous(input);
  Tensor y = empty(x.shape(), x.dtype(), x.device());
  on_device(x.device(),
            [&](const auto& on) { kernels::log_softmax(on, x.view(), y.fresh_view()); });
  return record("log_softmax", y, wrt(x, [](const Tensor& dy, const Tensor& out) {
                  return dy - exp(out) * sum(dy, -1, Keep::yes);
                }));
}

}  // namespace ingot
