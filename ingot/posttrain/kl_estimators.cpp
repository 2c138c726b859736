#include "ingot/posttrain/kl_estimators.h"

#include "ingot/ops/elementwise.h"

namespace ingot {

KlEstimator kl_estimator_of(const std::string& name) {
  if (name == "k1") {
    return KlEstimator::k1;
  }
  if (name == "k2") {
    return KlEstimator::k2;
  }
  check(name == "k3", ErrorKind::config, "KL estimator: '", name, "' is none of k1, k2, k3");
  return KlEstimator::k3;
}

Tensor kl_estimates(const Tensor& logps, const Tensor& reference, KlEstimator kind) {
  check(logps.shape() == reference.shape(), ErrorKind::shape,
        "kl_estimates: policy and reference must be alike: the policy is ", logps.shape(),
        ", the reference ", reference.shape());
  const Tensor u = reference - logps;
  switch (kind) {
    case KlEstimator::k1: return -u;
    case KlEstimator::k2: return square(u) * 0.5;
    case KlEstimator::k3: break;
  }
  return exp(u) - 1 - u;
}

}  // namespace ingot
