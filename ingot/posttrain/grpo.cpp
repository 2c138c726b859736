#include "ingot/posttrain/grpo.h"

#include "ingot/ops/elementwise.h"
#include "ingot/ops/reduce.h"
#include "ingot/ops/shape.h"

namespace ingot {
namespace {

// log ρ of tokens, or of an answer's geometric mean at each of its tokens.
Tensor log_ratios(const Tensor& logps, const Tensor& old_logps, const Tensor& mask,
                  const std::string& level) {
  const Tensor tokens = (logps - old_logps) * mask;
  if (level == "token") {
    return tokens;
  }
  check(level == "sequence", ErrorKind::config, "ratio: '", level, "' is none of token, sequence");
  const Tensor lengths = clamp(sum(mask, 1, Keep::yes), 1, std::numeric_limits<double>::infinity());
  return expand(sum(tokens, 1, Keep::yes) / lengths, tokens.shape());
}

}  // namespace

GrpoLoss grpo_loss(const Tensor& logps, const Tensor& old_logps, const Tensor& reference,
                   const Tensor& advantages, const Tensor& mask, const GrpoConfig& config) {
  check(logps.rank() == 2 && logps.shape() == mask.shape() && logps.shape() == old_logps.shape() &&
            advantages.shape() == Shape{logps.size(0)},
        ErrorKind::shape, "grpo_loss: needs [B, T] and [B] advantages: logps are ", logps.shape(),
        ", old ones ", old_logps.shape(), ", mask ", mask.shape(), ", advantages ",
        advantages.shape());
  check(config.beta == 0 || reference.defined(), ErrorKind::argument, "grpo_loss: beta is ",
        config.beta, ", so it needs the reference's log-probabilities");
  const ClippedLosses clipped = clipped_losses(log_ratios(logps, old_logps, mask, config.ratio),
                                               unsqueeze(advantages, 1), config.clip);
  Tensor losses = clipped.losses;
  if (config.beta > 0) {
    losses = losses + kl_estimates(logps, reference, KlEstimator::k3) * config.beta;
  }
  return {mean_of_tokens(losses, mask, config.mean), mean_of_tokens(clipped.clipped, mask)};
}

}  // namespace ingot
