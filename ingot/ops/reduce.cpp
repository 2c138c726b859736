#include "ingot/ops/reduce.h"

#include <limits>

#include "ingot/autograd/record.h"
#include "ingot/device/on_device.h"
#include "ingot/kernels/magnitude.h"
#include "ingot/kernels/reduce.h"
#include "ingot/ops/elementwise.h"
#include "ingot/ops/index.h"
#include "ingot/ops/shape.h"
#include "ingot/tensor/copy.h"
#include "ingot/tensor/factories.h"
#include "ingot/tensor/layout.h"

namespace ingot {
namespace {

// A dense x around dimension d: [what is before, d, what is after].
Tensor grouped(const Tensor& x, int64_t d) {
  Shape three = {1, x.shape()[d], 1};
  for (int64_t i = 0; i < x.rank(); ++i) {
    three[i < d ? 0 : 2] *= i == d ? 1 : x.shape()[i];
  }
  return reshaped(detach(dense(x)), three);
}

Shape without(Shape shape, int64_t d, Keep keep) {
  if (keep == Keep::yes) {
    shape[d] = 1;
  } else {
    shape.erase(d);
  }
  return shape;
}

// A gradient of the result as one that broadcasts against x.
Tensor restored(const Tensor& dy, int64_t d, Keep keep) {
  return keep == Keep::yes ? dy : unsqueeze(dy, d);
}

void check_float(const char* op, const Tensor& x) {
  check(is_float(x.dtype()), ErrorKind::dtype, op, ": takes floating-point tensors: got ",
        x.dtype());
}

void check_some(const char* op, const Tensor& x, int64_t d) {
  check(x.shape()[d] > 0, ErrorKind::shape, op, ": dimension ", d, " of ", x.shape(), " is empty");
}

// y = scale · Σ x over dimension d.
Tensor scaled_sum(const char* op, const Tensor& x, int64_t d, Keep keep, double scale) {
  Tensor y = empty(without(x.shape(), d, keep), x.dtype(), x.device());
  const Tensor three = grouped(x, d);
  on_device(x.device(),
            [&](const auto& on) { kernels::sum(on, three.view(), scale, y.fresh_view()); });
  return record(op, y, wrt(x, [=, shape = x.shape()](const Tensor& dy) {
                  const Tensor part = restored(dy, d, keep);
                  return expand(scale == 1 ? part : part * scale, shape);
                }));
}

Tensor integer_sum(const Tensor& x, int64_t d, Keep keep) {
  Tensor y = empty(without(x.shape(), d, keep), DType::i64, x.device());
  const Tensor three = grouped(x, d);
  on_device(x.device(),
            [&](const auto& on) { kernels::sum_integers(on, three.view(), y.fresh_view()); });
  return y;
}

// All of x as one dimension.
Tensor flat(const Tensor& x) { return reshape(x, {x.elements()}); }

Tensor position(const char* op, kernels::Extreme which, const Tensor& x, int64_t dim, Keep keep) {
  const int64_t d = x.shape().index(dim);
  check_some(op, x, d);
  Tensor y = empty(without(x.shape(), d, keep), DType::i64, x.device());
  const Tensor three = grouped(x, d);
  on_device(x.device(),
            [&](const auto& on) { kernels::extreme(on, which, three.view(), y.fresh_view()); });
  return y;
}

Tensor extreme(const char* op, kernels::Extreme which, const Tensor& x, int64_t dim, Keep keep) {
  const Tensor y = gather(x, dim, position(op, which, x, dim, Keep::yes));
  return keep == Keep::yes ? y : squeeze(y, dim);
}

// Smallest finite value of a dtype.
double lowest(DType type) {
  switch (type) {
    case DType::f16: return -65504;
    case DType::bf16: return -0x1.fep127;
    case DType::f32: return std::numeric_limits<float>::lowest();
    default: return std::numeric_limits<double>::lowest();
  }
}

}  // namespace

Tensor sum(const Tensor& x) { return sum(flat(x), 0); }

Tensor sum(const Tensor& x, int64_t dim, Keep keep) {
  const int64_t d = x.shape().index(dim);
  return is_float(x.dtype()) ? scaled_sum("sum", x, d, keep, 1) : integer_sum(x, d, keep);
}

Tensor mean(const Tensor& x) { return mean(flat(x), 0); }

Tensor mean(const Tensor& x, int64_t dim, Keep keep) {
  check_float("mean", x);
  const int64_t d = x.shape().index(dim);
  return scaled_sum("mean", x, d, keep, 1.0 / static_cast<double>(x.shape()[d]));
}

Tensor max(const Tensor& x, int64_t dim, Keep keep) {
  return extreme("max", kernels::Extreme::most, x, dim, keep);
}
Tensor min(const Tensor& x, int64_t dim, Keep keep) {
  return extreme("min", kernels::Extreme::least, x, dim, keep);
}
Tensor argmax(const Tensor& x, int64_t dim, Keep keep) {
  return position("argmax", kernels::Extreme::most, x, dim, keep);
}

Tensor var(const Tensor& x, int64_t dim, int64_t correction, Keep keep) {
  check_float("var", x);
  const int64_t d = x.shape().index(dim);
  check(x.shape()[d] > correction, ErrorKind::shape,
        "var: needs more elements than the correction: dimension ", dim, " of ", x.shape(), " has ",
        x.shape()[d], ", correction is ", correction);
  const double scale = 1.0 / static_cast<double>(x.shape()[d] - correction);
  Tensor y = empty(without(x.shape(), d, keep), x.dtype(), x.device());
  const Tensor three = grouped(x, d);
  on_device(x.device(), [&](const auto& on) {
    kernels::squared_deviation(on, three.view(), scale, y.fresh_view());
  });
  return record("var", y, wrt(x, [=, x = saved(x)](const Tensor& dy) {
                  const Tensor centred = x() - mean(x(), d, Keep::yes);
                  return centred * (restored(dy, d, keep) * (2 * scale));
                }));
}

Tensor logsumexp(const Tensor& x, int64_t dim, Keep keep) {
  check_float("logsumexp", x);
  const int64_t d = x.shape().index(dim);
  Tensor y = empty(without(x.shape(), d, keep), x.dtype(), x.device());
  const Tensor three = grouped(x, d);
  on_device(x.device(),
            [&](const auto& on) { kernels::logsumexp(on, three.view(), y.fresh_view()); });
  // dx = dy e^(x − y). A row of −∞ has y = −∞: raised to a finite number, its x − y stays −∞.
  return record("logsumexp", y, wrt(x, [=, x = saved(x)](const Tensor& dy, const Tensor& out) {
                  const Tensor finite =
                      clamp(restored(out, d, keep), lowest(out.dtype()), HUGE_VAL);
                  return restored(dy, d, keep) * exp(x() - finite);
                }));
}

Tensor cumsum(const Tensor& x, int64_t dim) {
  check(is_float(x.dtype()) || x.dtype() == DType::i64, ErrorKind::dtype,
        "cumsum: takes floating-point and i64 tensors: got ", x.dtype());
  const int64_t d = x.shape().index(dim);
  Tensor y = empty(x.shape(), x.dtype(), x.device());
  const Tensor three = grouped(x, d);
  Tensor sums = reshaped(y, three.shape());
  on_device(x.device(),
            [&](const auto& on) { kernels::cumsum(on, three.view(), sums.fresh_view()); });
  return record("cumsum", y,
                wrt(x, [d](const Tensor& dy) { return flip(cumsum(flip(dy, d), d), d); }));
}

Tensor norm(const Tensor& x) {
  check_float("norm", x);
  Tensor y = empty({}, accumulator(x.dtype()), x.device());
  const Tensor all = detach(dense(x));
  on_device(x.device(), [&](const auto& on) { kernels::norm(on, all.view(), y.fresh_view()); });
  return record("norm", y, wrt(x, [x = saved(x)](const Tensor& dy, const Tensor& out) {
                  // x = 0 makes 0 · (dy / tiny) = 0.
                  const Tensor positive = clamp(out, 1e-30, HUGE_VAL);
                  return x() * cast(dy / positive, x().dtype());
                }));
}

}  // namespace ingot
