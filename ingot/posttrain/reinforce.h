#pragma once

#include "ingot/tensor/tensor.h"

namespace ingot {

// REINFORCE: the gradient of what a policy earns, from what it wrote. A: reward less a baseline
// that does not depend on the answer, or leave_one_out_advantages (posttrain/advantages.h).
//   loss = −mean over answers of A Σ_t log π(y_t)
// Williams 1992; for whole answers Ahmadian et al. 2024, arXiv:2402.14740, equation 6. logps, mask:
// [B, T]   advantages: [B]   → []
Tensor reinforce_loss(const Tensor& logps, const Tensor& mask, const Tensor& advantages);

// Truncated importance sampling: answers are written by a program whose probabilities differ from
// the trainer's (other kernels, other precision, older weights), and are weighed by what the
// trainer gives them,
//   w = min(π_train / π_rollout, cap)
// of each token, or of an answer's product at each of its tokens; 0 outside the mask. Ionides 2008;
// Espeholt et al. 2018, arXiv:1802.01561, section 4.1; Yao et al. 2025. Without history.
enum class WeightLevel : uint8_t { token, sequence };
Tensor importance_weights(const Tensor& train_logps, const Tensor& rollout_logps,
                          const Tensor& mask, double cap, WeightLevel level);

// −Σ m w A log π / Σ m: REINFORCE by tokens with those weights. All [B, T] but advantages: [B].
Tensor weighted_reinforce_loss(const Tensor& logps, const Tensor& weights, const Tensor& mask,
                               const Tensor& advantages);

}  // namespace ingot
