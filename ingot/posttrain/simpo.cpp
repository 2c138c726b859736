#include "ingot/posttrain/simpo.h"

#include "ingot/autograd/record.h"
#include "ingot/ops/elementwise.h"

namespace ingot {

PairLosses simpo_losses(const PairLogprobs& policy, const SimpoConfig& config) {
  const Tensor chosen = policy.chosen.means() * config.beta;
  const Tensor rejected = policy.rejected.means() * config.beta;
  return {-log_sigmoid(chosen - rejected - config.gamma), detach(chosen), detach(rejected)};
}

}  // namespace ingot
