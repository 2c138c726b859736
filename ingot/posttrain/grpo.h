#pragma once

#include "ingot/posttrain/kl_estimators.h"
#include "ingot/posttrain/ppo.h"
#include "ingot/posttrain/token_mean.h"

namespace ingot {

// Group relative policy optimization and its relatives: PPO's clipped loss with one advantage an
// answer (posttrain/advantages.h) and no values, plus β times k3 of the reference.
//   GRPO      ratio "token", beta > 0, sequence_mean: Shao et al. 2024, arXiv:2402.03300, equation
//   3 Dr. GRPO  constant, centered_advantages: Liu et al. 2025, arXiv:2503.20783 DAPO clip.high >
//   clip.low, beta 0, token_mean: Yu et al. 2025, arXiv:2503.14476, equation 8 GSPO      ratio
//   "sequence", s = exp(mean_t log ρ_t), the same for each token of an answer,
//             sequence_mean: Zheng et al. 2025, arXiv:2507.18071, equation 5
struct GrpoConfig {
  ClipConfig clip;
  TokenMean mean;
  std::string ratio = "token";
  double beta = 0;

  template <class V>
  void describe(V& v) {
    v("clip", clip, "range of the ratio of new to old probabilities");
    v("mean", mean, "how losses of tokens become one");
    v("ratio", ratio, one_of({"token", "sequence"}), "what a ratio is of");
    v("beta", beta, at_least(0), "weight of the divergence from the reference");
  }
};

struct GrpoLoss {
  Tensor loss;           // [], with history
  Tensor clip_fraction;  // [] share of tokens that were clipped
};
// logps: [B, T] with history   old_logps: of the policy that wrote the answers   reference: [B, T],
// or undefined where beta is 0   advantages: [B]   mask: [B, T]
GrpoLoss grpo_loss(const Tensor& logps, const Tensor& old_logps, const Tensor& reference,
                   const Tensor& advantages, const Tensor& mask, const GrpoConfig& config);

}  // namespace ingot
