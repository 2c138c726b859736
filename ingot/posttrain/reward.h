#pragma once

#include "ingot/base/range.h"
#include "ingot/tensor/tensor.h"

namespace ingot {

// Reward models learn a score of an answer from comparisons.
struct RewardConfig {
  double center = 0;
  bool margin = false;

  template <class V>
  void describe(V& v) {
    v("center", center, at_least(0),
      "weight of (chosen + rejected)², which keeps rewards around 0");
    v("margin", margin, "ask for the difference of the rows' scores, where they have them");
  }
};

// The Bradley–Terry model, P(c beats r) = σ(s_c − s_r):
//   loss = −log σ(s_c − s_r − margin) + center · (s_c + s_r)²
// chosen, rejected: [P] scores   margin: [P], or undefined for none   → [P]. Ouyang et al. 2022,
// arXiv:2203.02155, equation 1; margin: Touvron et al. 2023, arXiv:2307.09288, equation 2; center:
// Eisenstein et al. 2023, arXiv:2312.09244.
Tensor bradley_terry_losses(const Tensor& chosen, const Tensor& rejected, const Tensor& margin = {},
                            double center = 0);

// Lists of K answers, best first, by the Plackett–Luce model: each is the best of those that are
// left,
//   loss = Σ_{k<K} (logsumexp(s_k, …, s_K) − s_k)
// scores: [N, K]   lengths: [N] i64, answers that each list has, or undefined for K   → [N]. Luce
// 1959; Plackett 1975. For K = 2 it is Bradley–Terry.
Tensor plackett_luce_losses(const Tensor& scores, const Tensor& lengths = {});

// The same lists as all their pairs, each list weighing 1: the mean of −log σ(s_i − s_j) over
// i < j. InstructGPT, equation 1. scores: [N, K] → [N]
Tensor ranked_pairs_losses(const Tensor& scores);

// Σ_{p} [s_c > s_r], equal ones counting half.
double pairs_in_order(const Tensor& chosen, const Tensor& rejected);

}  // namespace ingot
