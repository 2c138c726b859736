#include "ingot/ops/dropout.h"

#include "ingot/autograd/record.h"
#include "ingot/device/on_device.h"
#include "ingot/kernels/dropout.h"
#include "ingot/ops/shape.h"
#include "ingot/tensor/factories.h"

namespace ingot {

Tensor dropout(const Tensor& input, double p, const RandomKey& key) {
  check(is_float(input.dtype()), ErrorKind::dtype, "dropout: takes floating-point tensors: got ",
        input.dtype());
  check(p >= 0 && p < 1, ErrorKind::argument, "dropout: p is outside [0, 1): got ", p);
  if (p == 0) {
    return input;
  }
  const Tensor x = contiguous(input);
  Tensor y = empty(x.shape(), x.dtype(), x.device());
  on_device(x.device(),
            [&](const auto& on) { kernels::dropout(on, x.view(), p, key, y.fresh_view()); });
  return record("dropout", y, wrt(x, [p, key](const Tensor& dy) { return dropout(dy, p, key); }));
}

}  // namespace ingot
