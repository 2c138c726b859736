#include "ingot/posttrain/cpo.h"

#include "ingot/autograd/record.h"
#include "ingot/ops/elementwise.h"
#include "ingot/ops/reduce.h"

namespace ingot {

Tensor cpo_preference(const PairLogprobs& policy, double beta) {
  return -log_sigmoid((policy.chosen.sums - policy.rejected.sums) * beta);
}

Tensor cpo_token_nll(const PairLogprobs& policy) {
  return -sum(policy.chosen.sums) / sum(policy.chosen.lengths);
}

PairLosses cpo_losses(const PairLogprobs& policy, const CpoConfig& config) {
  return {cpo_preference(policy, config.beta) - policy.chosen.means() * config.alpha,
          detach(policy.chosen.sums) * config.beta, detach(policy.rejected.sums) * config.beta};
}

}  // namespace ingot
