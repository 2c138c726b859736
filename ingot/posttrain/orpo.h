#pragma once

#include "ingot/base/range.h"
#include "ingot/posttrain/preference.h"

namespace ingot {

// Odds-ratio preference optimization: no reference. With c, r the mean log-probability of a token
// of the chosen and of the rejected answer, and odds(p) = p / (1 − p):
//   log odds ratio = (c − log(1 − eᶜ)) − (r − log(1 − eʳ))
//   loss = −c − λ log σ(log odds ratio)
// Hong, Lee & Thorne 2024, arXiv:2403.07691, equations 4 to 7. −c is the loss of fine-tuning on the
// chosen answers, averaged over each answer's tokens. Rewards are λ c and λ r.
struct OrpoConfig {
  double lambda = 0.1;

  template <class V>
  void describe(V& v) {
    v("lambda", lambda, at_least(0), "weight of the odds ratio beside the likelihood");
  }
};

// log(p / (1 − p)) from log p < 0. At log p = 0, where the odds are infinite, p is taken as
// 1 − 10⁻¹². x: any shape
Tensor log_odds(const Tensor& x);

// The loss of each pair from mean log-probabilities [P] and the likelihood term nll [P].
Tensor orpo_losses(const Tensor& chosen, const Tensor& rejected, const Tensor& nll, double lambda);

PairLosses orpo_losses(const PairLogprobs& policy, const OrpoConfig& config);

}  // namespace ingot
