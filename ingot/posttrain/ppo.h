#pragma once

#include "ingot/base/range.h"
#include "ingot/tensor/tensor.h"

namespace ingot {

// Proximal policy optimization. With ρ_t = π(y_t) / π_old(y_t) of a token and its advantage A_t,
//   loss_t = max(−ρ A, −clip(ρ, 1 − low, 1 + high) A)
// so that a token stops pulling once its ratio has left the range in the direction of A. Schulman
// et al. 2017, arXiv:1707.06347, equation 7; low ≠ high: DAPO, Yu et al. 2025, arXiv:2503.14476.
// dual > 1 bounds the loss where A < 0 too, by −dual · A: Ye et al. 2020, arXiv:1912.09729,
// equation 5.
struct ClipConfig {
  double low = 0.2;
  double high = 0.2;
  double dual = 0;

  template <class V>
  void describe(V& v) {
    v("low", low, half_open(0, 1), "how far below 1 a ratio may fall");
    v("high", high, at_least(0), "how far above 1 a ratio may rise");
    v("dual", dual, at_least(0), "bound of ratios whose advantage is negative, above 1; 0: none");
  }
};

struct ClippedLosses {
  Tensor losses;   // [B, T], with history
  Tensor clipped;  // [B, T], 1 where the clipped term is the larger one; without history
};
// log_ratios: [B, T] log ρ, with history   advantages: [B, T] or [B, 1]
ClippedLosses clipped_losses(const Tensor& log_ratios, const Tensor& advantages,
                             const ClipConfig& config);

// ½ max((V − R)², (V_old + clip(V − V_old, −c, c) − R)²): the same caution for values; c = 0: ½
// (V − R)². All [B, T].
Tensor value_losses(const Tensor& values, const Tensor& old_values, const Tensor& returns,
                    double clip);

// −Σ_v p_v log p_v of each row, by natural logarithms. logits: [..., V] → [...]
Tensor entropies(const Tensor& logits);

// What a batch that the policy wrote is worth.
struct PpoConfig {
  ClipConfig clip;
  double value_clip = 0.2;
  double value_coefficient = 0.1;
  double entropy_coefficient = 0;

  template <class V>
  void describe(V& v) {
    v("clip", clip, "range of the ratio of new to old probabilities");
    v("value_clip", value_clip, at_least(0),
      "how far a value may move from the old one; 0: freely");
    v("value_coefficient", value_coefficient, at_least(0), "weight of the values' loss");
    v("entropy_coefficient", entropy_coefficient, at_least(0), "what entropy is worth");
  }
};

struct PpoBatch {  // all [B, T]; the first three with history
  Tensor logps, values, entropies;
  Tensor old_logps, old_values, advantages, returns, mask;
};

struct PpoLoss {
  Tensor loss;  // policy + value_coefficient value − entropy_coefficient entropy
  Tensor policy, value, entropy;  // means over tokens, without history
  Tensor approx_kl;               // mean of log π_old − log π
  Tensor clip_fraction;           // share of tokens that were clipped
};
// Equation 9 of the paper.
PpoLoss ppo_loss(const PpoBatch& batch, const PpoConfig& config);

}  // namespace ingot
