#include "ingot/posttrain/ppo.h"

#include "ingot/autograd/record.h"
#include "ingot/ops/elementwise.h"
#include "ingot/ops/reduce.h"
#include "ingot/ops/shape.h"
#include "ingot/ops/softmax.h"
#include "ingot/posttrain/kl_estimators.h"
#include "ingot/posttrain/token_mean.h"
#include "ingot/tensor/factories.h"

namespace ingot {

ClippedLosses clipped_losses(const Tensor& log_ratios, const Tensor& advantages,
                             const ClipConfig& config) {
  check(config.dual == 0 || config.dual > 1, ErrorKind::config,
        "clip.dual: must be above 1, or 0 for none; it is ", config.dual);
  const Tensor ratios = exp(log_ratios);
  const Tensor cost = -advantages;
  const Tensor free = ratios * cost;
  const Tensor held = clamp(ratios, 1 - config.low, 1 + config.high) * cost;
  ClippedLosses out;
  out.clipped = cast(greater(detach(held), detach(free)), ratios.dtype());
  out.losses = maximum(free, held);
  if (config.dual > 0) {
    const Tensor zero = scalar(0, cost.dtype(), cost.device());
    out.losses = where(greater(cost, zero), minimum(out.losses, cost * config.dual), out.losses);
  }
  return out;
}

Tensor value_losses(const Tensor& values, const Tensor& old_values, const Tensor& returns,
                    double clip) {
  const Tensor free = square(values - returns);
  if (clip == 0) {
    return free * 0.5;
  }
  const Tensor near = old_values + clamp(values - old_values, -clip, clip);
  return maximum(free, square(near - returns)) * 0.5;
}

Tensor entropies(const Tensor& logits) {
  const Tensor logps = log_softmax(logits);
  return -sum(exp(logps) * logps, -1);
}

PpoLoss ppo_loss(const PpoBatch& batch, const PpoConfig& config) {
  const ClippedLosses clipped =
      clipped_losses(batch.logps - batch.old_logps, batch.advantages, config.clip);
  const Tensor policy = mean_of_tokens(clipped.losses, batch.mask);
  const Tensor value = mean_of_tokens(
      value_losses(batch.values, batch.old_values, batch.returns, config.value_clip), batch.mask);
  const Tensor entropy = mean_of_tokens(batch.entropies, batch.mask);
  PpoLoss out;
  out.loss = policy + value * config.value_coefficient - entropy * config.entropy_coefficient;
  out.policy = detach(policy);
  out.value = detach(value);
  out.entropy = detach(entropy);
  out.approx_kl = mean_of_tokens(
      kl_estimates(batch.old_logps, detach(batch.logps), KlEstimator::k1), batch.mask);
  out.clip_fraction = mean_of_tokens(clipped.clipped, batch.mask);
  return out;
}

}  // namespace ingot
