#include "ingot/posttrain/ewc.h"

#include "ingot/autograd/grad_mode.h"
#include "ingot/ops/elementwise.h"
#include "ingot/ops/reduce.h"

namespace ingot {

Tensor fisher_diagonal(const Tensor& sample_grads) {
  const NoGrad quiet;
  return mean(square(sample_grads), 0);
}

Tensor ewc_penalty(const TensorList& theta, const TensorList& old, const TensorList& fisher,
                   double lambda) {
  check(!theta.empty() && theta.size() == old.size() && theta.size() == fisher.size(),
        ErrorKind::argument, "ewc_penalty: needs an old value and a Fisher information of each of ",
        theta.size(), " parameters; there are ", old.size(), " and ", fisher.size());
  Tensor total;
  for (size_t i = 0; i < theta.size(); ++i) {
    check(theta[i].shape() == old[i].shape() && theta[i].shape() == fisher[i].shape(),
          ErrorKind::shape, "ewc_penalty: parameter ", i, " is ", theta[i].shape(),
          ", its old value ", old[i].shape(), ", its Fisher information ", fisher[i].shape());
    const Tensor part = sum(fisher[i] * square(theta[i] - old[i]));
    total = total.defined() ? total + part : part;
  }
  return total * (lambda / 2);
}

}  // namespace ingot
