// sum_to of ops/shape.h: the gradient of broadcasting.

#include "ingot/autograd/record.h"
#include "ingot/device/on_device.h"
#include "ingot/kernels/reduce.h"
#include "ingot/ops/shape.h"
#include "ingot/tensor/copy.h"
#include "ingot/tensor/factories.h"
#include "ingot/tensor/layout.h"

namespace ingot {
namespace {

void check_sums(const Tensor& x, const Shape& shape) {
  const int64_t extra = x.rank() - shape.rank();
  bool fits = extra >= 0;
  for (int64_t i = 0; i < shape.rank() && fits; ++i) {
    fits = shape[i] == 1 || shape[i] == x.shape()[i + extra];
  }
  check(fits, ErrorKind::shape, "sum_to: ", x.shape(), " does not sum to ", shape,
        "; sizes must be equal or 1, counted from the right");
  check(is_float(x.dtype()), ErrorKind::dtype, "sum_to: takes floating-point tensors: got ",
        x.dtype());
}

// Sums dimensions [first, last) of a dense x, which stay with size 1.
Tensor summed(const Tensor& x, int64_t first, int64_t last) {
  Shape three = {1, 1, 1};
  Shape shape = x.shape();
  for (int64_t i = 0; i < x.rank(); ++i) {
    three[i < first ? 0 : (i < last ? 1 : 2)] *= x.shape()[i];
    shape[i] = i >= first && i < last ? 1 : shape[i];
  }
  Tensor y = empty(shape, x.dtype(), x.device());
  const Tensor grouped = reshaped(x, three);
  on_device(x.device(),
            [&](const auto& on) { kernels::sum(on, grouped.view(), 1, y.fresh_view()); });
  return y;
}

}  // namespace

Tensor sum_to(const Tensor& x, const Shape& shape) {
  if (x.shape() == shape) {
    return x;
  }
  check_sums(x, shape);
  const int64_t extra = x.rank() - shape.rank();
  const auto goes = [&](int64_t i) {
    return x.shape()[i] != 1 && (i < extra || shape[i - extra] == 1);
  };
  // Neighbouring dimensions go in one sum.
  Tensor y = detach(dense(x));
  for (int64_t first = 0; first < x.rank(); ++first) {
    int64_t last = first;
    while (last < x.rank() && goes(last)) {
      ++last;
    }
    if (last > first) {
      y = summed(y, first, last);
      first = last;
    }
  }
  return record("sum_to", reshaped(y, shape),
                wrt(x, [before = x.shape()](const Tensor& dy) { return expand(dy, before); }));
}

}  // namespace ingot
