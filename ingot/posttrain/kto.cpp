#include "ingot/posttrain/kto.h"

#include <algorithm>

#include "ingot/autograd/record.h"
#include "ingot/ops/elementwise.h"
#include "ingot/ops/reduce.h"
#include "ingot/ops/shape.h"

namespace ingot {

Tensor kto_losses(const Tensor& policy, const Tensor& reference, const Tensor& desirable, double kl,
                  const KtoConfig& config) {
  const double z = std::max(0.0, kl);
  const Tensor r = policy - reference;
  const Tensor good = (1 - sigmoid((r - z) * config.beta)) * config.desirable_weight;
  const Tensor bad = (1 - sigmoid((z - r) * config.beta)) * config.undesirable_weight;
  return where(desirable, good, bad);
}

double kto_reference_point(const Tensor& policy, const Tensor& reference) {
  if (policy.device().kind == DeviceKind::meta || policy.elements() == 0) {
    return 0;
  }
  return std::max(0.0, mean(detach(policy) - detach(reference)).item());
}

}  // namespace ingot
