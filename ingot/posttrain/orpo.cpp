#include "ingot/posttrain/orpo.h"

#include <limits>

#include "ingot/autograd/record.h"
#include "ingot/ops/elementwise.h"
#include "ingot/tensor/factories.h"

namespace ingot {

Tensor log_odds(const Tensor& x) {
  // log(1 − eˣ): near 0 from the series of 1 − eˣ, where the difference would lose its digits.
  constexpr double near_zero = -0.01;
  const auto constant = [&](double value) { return scalar(value, x.dtype(), x.device()); };
  const Tensor y = clamp(x, -std::numeric_limits<double>::infinity(), -1e-12);
  const Tensor near = greater(y, constant(near_zero));
  const Tensor series = -y * (1 + y * (0.5 + y * (1.0 / 6 + y * (1.0 / 24 + y / 120))));
  const Tensor far = where(near, constant(near_zero), y);  // of which 1 − eˣ is taken
  return y - where(near, log(series), log(1 - exp(far)));
}

Tensor orpo_losses(const Tensor& chosen, const Tensor& rejected, const Tensor& nll, double lambda) {
  return nll - log_sigmoid(log_odds(chosen) - log_odds(rejected)) * lambda;
}

PairLosses orpo_losses(const PairLogprobs& policy, const OrpoConfig& config) {
  const Tensor chosen = policy.chosen.means();
  const Tensor rejected = policy.rejected.means();
  return {orpo_losses(chosen, rejected, -chosen, config.lambda), detach(chosen) * config.lambda,
          detach(rejected) * config.lambda};
}

}  // namespace ingot
