#include "ingot/autograd/checkpoint.h"

#include "ingot/autograd/backward.h"
#include "ingot/autograd/record.h"
#include "ingot/tensor/factories.h"

namespace ingot {
namespace {

// Walks back from all of ys at once.
void backward_from(const TensorList& ys, const TensorList& dys) {
  const Tensor joint = record("recomputed results", zeros({}, ys[0].dtype(), ys[0].device()),
                              jointly(ys, [&dys](const TensorList&) { return dys; }));
  backward(joint);
}

}  // namespace

Tensor recomputed(const std::function<Tensor(const Tensor&)>& run, const Tensor& x) {
  return recomputed([run](const Tensor& input) { return TensorList{run(input)}; }, x).front();
}

TensorList recomputed(const std::function<TensorList(const Tensor&)>& run, const Tensor& x) {
  if (!needs_grad(x)) {
    return run(x);
  }
  TensorList ys;
  {
    const NoGrad quiet;
    ys = run(detach(x));
  }
  const auto vjp = [run, kept = saved(detach(x))](const TensorList& dys) {
    const WithGrad again;
    Tensor leaf = detach(kept());
    require_grad(leaf);
    // Not the leaf's own gradient: leaves collect in the accumulator type, the operation before
    // expects dx in the type of x.
    Tensor dx;
    const Tensor inner =
        record("recomputed input", detach(leaf), wrt(leaf, [&dx](const Tensor& sum) {
                 dx = sum;
                 return Tensor();
               }));
    backward_from(run(inner), dys);
    return TensorList{dx};
  };
  return record("recomputed", std::move(ys), jointly({x}, vjp));
}

}  // namespace ingot
