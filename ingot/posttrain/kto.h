#pragma once

#include "ingot/base/range.h"
#include "ingot/posttrain/sequence_logprobs.h"

namespace ingot {

// Kahneman-Tversky optimization: answers that are good or bad, unpaired. With r = π − ρ of the
// summed log-probabilities and a reference point z ≥ 0, an estimate of KL(policy ‖ reference)
// without gradient,
//   desirable     w_d (1 − σ(β (r − z)))
//   undesirable   w_u (1 − σ(β (z − r)))
// Ethayarajh et al. 2024, arXiv:2402.01306, equations 7 and 8 (without the constant λ_y, which has
// no gradient). Rewards are β r.
struct KtoConfig {
  double beta = 0.1;
  double desirable_weight = 1;
  double undesirable_weight = 1;

  template <class V>
  void describe(V& v) {
    v("beta", beta, above(0), "how strongly the policy is held to the reference");
    v("desirable_weight", desirable_weight, at_least(0), "weight of good answers");
    v("undesirable_weight", undesirable_weight, at_least(0),
      "weight of bad answers; where there are n times as many good ones, about n");
  }
};

// policy: [N] with history   reference: [N]   desirable: [N] bool   kl: the reference point; a
// negative one counts as 0   → [N]
Tensor kto_losses(const Tensor& policy, const Tensor& reference, const Tensor& desirable, double kl,
                  const KtoConfig& config);

// z of a micro-batch: the mean of r over answers that belong to other prompts, not below 0. The
// paper's section 4.1. 0 on the meta device.
double kto_reference_point(const Tensor& policy, const Tensor& reference);

}  // namespace ingot
