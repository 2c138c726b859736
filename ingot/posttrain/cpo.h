#pragma once

#include "ingot/base/range.h"
#include "ingot/posttrain/preference.h"

namespace ingot {

// Contrastive preference optimization: DPO with a uniform reference, and the likelihood of the
// chosen answers beside it. With summed log-probabilities π,
//   loss = −log σ(β (π_c − π_r)) + α nll,   nll = −π_c / |y_c|
// Xu et al. 2024, arXiv:2401.08417, equation 3. Rewards are β π. Some implementations average nll
// over all chosen tokens of a batch instead of over answers: cpo_token_nll. That mean depends on
// how a step is divided into micro-batches, so training takes the paper's.
struct CpoConfig {
  double beta = 0.1;
  double alpha = 1;

  template <class V>
  void describe(V& v) {
    v("beta", beta, above(0), "scale of the difference of log-probabilities");
    v("alpha", alpha, at_least(0), "weight of the likelihood of the chosen answers");
  }
};

PairLosses cpo_losses(const PairLogprobs& policy, const CpoConfig& config);

// The part without the likelihood, [P].
Tensor cpo_preference(const PairLogprobs& policy, double beta);
// The likelihood term as a mean over all chosen tokens: [].
Tensor cpo_token_nll(const PairLogprobs& policy);

}  // namespace ingot
