#include "ingot/autograd/checkpoint.h"

#include "ingot/autograd/backward.h"
#include "ingot/autograd/record.h"

namespace ingot {

Tensor recomputed(const std::function<Tensor(const Tensor&)>& run, const Tensor& x) {
  if (!needs_grad(x)) {
    return run(x);
  }
  Tensor y;
  {
    const NoGrad quiet;
    y = run(detach(x));
  }
  return record("recomputed", y, wrt(x, [run, kept = saved(detach(x))](const Tensor& dy) {
                  const WithGrad again;
                  Tensor inner = detach(kept());
                  require_grad(inner);
                  const Tensor result = run(inner);
                  backward(result, dy);
                  return std::move(grad(inner));
                }));
}

}  // namespace ingot
