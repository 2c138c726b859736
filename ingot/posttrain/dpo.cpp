#include "ingot/posttrain/dpo.h"

#include "ingot/autograd/record.h"
#include "ingot/ops/elementwise.h"

namespace ingot {
namespace {

Tensor sigmoid_losses(const Tensor& z, double e) {
  const Tensor right = -log_sigmoid(z);
  return e == 0 ? right : right * (1 - e) - log_sigmoid(-z) * e;
}

Tensor robust_losses(const Tensor& z, double e) {
  return (log_sigmoid(-z) * e - log_sigmoid(z) * (1 - e)) / (1 - 2 * e);
}

}  // namespace

PairLosses dpo_losses(const PairLogprobs& policy, const PairLogprobs& reference,
                      const DpoConfig& config) {
  const Tensor chosen = policy.chosen.sums - reference.chosen.sums;
  const Tensor rejected = policy.rejected.sums - reference.rejected.sums;
  const bool averaged = config.loss == "sigmoid_norm" || config.loss == "ipo_average";
  const Tensor d = averaged ? chosen / policy.chosen.lengths - rejected / policy.rejected.lengths
                            : chosen - rejected;
  PairLosses out;
  out.chosen_rewards = detach(chosen) * config.beta;
  out.rejected_rewards = detach(rejected) * config.beta;
  if (config.loss == "robust") {
    out.losses = robust_losses(d * config.beta, config.label_smoothing);
  } else if (config.loss == "hinge") {
    out.losses = relu(1 - d * config.beta);
  } else if (config.loss == "ipo" || config.loss == "ipo_average") {
    out.losses = square(d - 1 / (2 * config.beta));
  } else {
    check(config.loss == "sigmoid" || config.loss == "sigmoid_norm", ErrorKind::config,
          "dpo.loss: '", config.loss,
          "' is none of sigmoid, sigmoid_norm, robust, hinge, ipo, ipo_average");
    out.losses = sigmoid_losses(d * config.beta, config.label_smoothing);
  }
  return out;
}

}  // namespace ingot
