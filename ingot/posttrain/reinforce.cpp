#include "ingot/posttrain/reinforce.h"

#include "ingot/autograd/grad_mode.h"
#include "ingot/ops/elementwise.h"
#include "ingot/ops/reduce.h"
#include "ingot/ops/shape.h"
#include "ingot/posttrain/token_mean.h"

namespace ingot {

Tensor reinforce_loss(const Tensor& logps, const Tensor& mask, const Tensor& advantages) {
  return -mean(sum(logps * mask, 1) * advantages);
}

Tensor importance_weights(const Tensor& train_logps, const Tensor& rollout_logps,
                          const Tensor& mask, double cap, WeightLevel level) {
  const NoGrad quiet;
  check(cap > 0, ErrorKind::argument, "importance_weights: cap must be above 0; it is ", cap);
  Tensor log_weights = (train_logps - rollout_logps) * mask;
  if (level == WeightLevel::sequence) {
    log_weights = expand(sum(log_weights, 1, Keep::yes), mask.shape());
  }
  return clamp(exp(log_weights), 0, cap) * mask;
}

Tensor weighted_reinforce_loss(const Tensor& logps, const Tensor& weights, const Tensor& mask,
                               const Tensor& advantages) {
  return mean_of_tokens(-(logps * weights * unsqueeze(advantages, 1)), mask);
}

}  // namespace ingot
