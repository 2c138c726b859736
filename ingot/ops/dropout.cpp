#include "ingot/ops/dropout.h"

#include "ingot/autograd/record.h"
#include "ingot/device/on_device.h"
#include "ingot/kernels/dropout.h"
#include "ingot/ops/shape.h"
#include "ingot/tensor/factories.h"

namespace ingot {

Tensor dropout(const Tensor& input, double p, const RandomKey& key) {
  check(p >= 0 && p <= 1, ErrorKind::argument, "dropout: p must be in [0, 1]: got ", p);
  check(is_float(input.dtype()), ErrorKind::dtype, "dropout: takes floating-point tensors: got ",
        input.dtype());
  const Tensor x = contiguous(input);
  Tensor y = empty(x.shape(), x.dtype(), x.device());
  on_device(x.device(),
            [&](const auto& on) { kernels::dropout(on, x.view(), p, key, y.fresh_view()); });
  // Linear in x: the gradient is the same mask applied to dy.
  return record("dropout", y, wrt(x, [p, key](const Tensor& dy) { return dropout(dy, p, key); }));
}

}  // namespace ingot
