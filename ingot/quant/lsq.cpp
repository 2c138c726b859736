#include "ingot/quant/lsq.h"

#include <cmath>

#include "ingot/autograd/record.h"
#include "ingot/ops/elementwise.h"
#include "ingot/ops/reduce.h"
#include "ingot/quant/fake_quantize.h"

namespace ingot::quant {

Tensor lsq(const Tensor& v, const Tensor& step, int64_t qn, int64_t qp) {
  check(qn >= 0 && qp > 0, ErrorKind::argument,
        "lsq: bounds must be at least 0 and above 0: qn is ", qn, ", qp is ", qp);
  check(step.elements() == 1, ErrorKind::shape, "lsq: one step for all values: step is ",
        step.shape());
  const double g = 1 / std::sqrt(static_cast<double>(v.elements()) * static_cast<double>(qp));
  // The value of the step, g times its gradient.
  const Tensor s = step * g + detach(step) * (1 - g);
  return nearest_integer(clamp(v / s, -static_cast<double>(qn), static_cast<double>(qp))) * s;
}

double lsq_first_step(const Tensor& v, int64_t qp) {
  return 2 * mean(abs(detach(v))).item() / std::sqrt(static_cast<double>(qp));
}

}  // namespace ingot::quant
