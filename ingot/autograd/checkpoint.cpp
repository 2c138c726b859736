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
                  Tensor leaf = detach(kept());
                  require_grad(leaf);
                  // Not the leaf's own gradient: leaves collect in the accumulator type, the
                  // operation before expects dx in the type of x.
                  Tensor dx;
                  const Tensor inner =
                      record("recomputed input", detach(leaf), wrt(leaf, [&dx](const Tensor& sum) {
                               dx = sum;
                               return Tensor();
                             }));
                  backward(run(inner), dy);
                  return dx;
                }));
}

}  // namespace ingot
