#pragma once

#include "ingot/base/range.h"
#include "ingot/posttrain/preference.h"

namespace ingot {

// Direct preference optimization and its relatives. With log-probabilities π of the policy and ρ of
// the reference, summed over an answer y_c that was chosen and y_r that was rejected,
//   d = (π_c − ρ_c) − (π_r − ρ_r)        (sigmoid, robust, hinge, ipo)
//   d̄ = (π_c − ρ_c)/|y_c| − (π_r − ρ_r)/|y_r|        (sigmoid_norm, ipo_average)
// and σ the logistic function, β and ε of the config, the loss of a pair is
//   sigmoid       −(1 − ε) log σ(β d) − ε log σ(−β d)
//                 Rafailov et al. 2023, arXiv:2305.18290, equation 7; ε > 0: cDPO, Mitchell 2023
//   sigmoid_norm  the same with d̄: Lambert et al. 2024, arXiv:2411.15124, equation 6
//   robust        (−(1 − ε) log σ(β d) + ε log σ(−β d)) / (1 − 2 ε): Chowdhury et al. 2024,
//                 arXiv:2403.00409, equation 12
//   hinge         max(0, 1 − β d): Zhao et al. 2023, arXiv:2305.10425
//   ipo           (d − 1/(2β))²: Azar et al. 2023, arXiv:2310.12036, equation 17
//   ipo_average   the same with d̄, as later implementations have it
// Rewards are β (π − ρ) of the sums, whatever the loss.
struct DpoConfig {
  std::string loss = "sigmoid";
  double beta = 0.1;
  double label_smoothing = 0;

  template <class V>
  void describe(V& v) {
    v("loss", loss, one_of({"sigmoid", "sigmoid_norm", "robust", "hinge", "ipo", "ipo_average"}),
      "function of the margin; sigmoid is DPO, with label_smoothing cDPO");
    v("beta", beta, above(0), "how strongly the policy is held to the reference");
    v("label_smoothing", label_smoothing, half_open(0, 0.5),
      "share of pairs taken to be labelled the wrong way round");
  }
};

// policy with history, reference without. [P] each.
PairLosses dpo_losses(const PairLogprobs& policy, const PairLogprobs& reference,
                      const DpoConfig& config);

}  // namespace ingot
