#pragma once

#include "ingot/base/range.h"
#include "ingot/posttrain/preference.h"

namespace ingot {

// SimPO: no reference; rewards are β log p(y) / |y|, which should differ by γ:
//   loss = −log σ(β (π_c/|y_c| − π_r/|y_r|) − γ)
// Meng, Xia & Chen 2024, arXiv:2405.14734, equation 6.
struct SimpoConfig {
  double beta = 2;
  double gamma = 1;

  template <class V>
  void describe(V& v) {
    v("beta", beta, above(0), "scale of the mean log-probability of an answer's tokens");
    v("gamma", gamma, at_least(0), "margin that is asked for");
  }
};

PairLosses simpo_losses(const PairLogprobs& policy, const SimpoConfig& config);

}  // namespace ingot
