#pragma once

#include <vector>

#include "ingot/nn/moe.h"

namespace ingot::nn {

// Losses that keep a router useful, over the routers of all layers laid end to end. `counted` is
// [N], 1 for tokens that count and 0 for others (padding); undefined: all count. Results are [] in
// the type of the logits; 0 where no token counts.

// E Σ_e f_e P_e: f_e the number of choices of expert e per token, P_e the mean over tokens of its
// probability. k where all experts are as likely and as often taken. f carries no gradient.
// Probabilities are the softmax of the logits, or their sigmoids over the sum of these. Fedus et
// al. 2022, arXiv:2101.03961, equations 4 to 6, for k choices as in Mixtral; sigmoids: DeepSeek-AI
// 2024, arXiv:2412.19437, equations 17 to 20, over the batch instead of a sequence.
Tensor load_balancing_loss(const std::vector<Routed>& layers, RouterScore score,
                           const Tensor& counted = {});

// The mean over tokens of logsumexp(logits)². Zoph et al. 2022, arXiv:2202.08906, equation 5.
Tensor router_z_loss(const std::vector<Routed>& layers, const Tensor& counted = {});

// How many tokens chose each expert: [E] in the type of the logits.
Tensor expert_counts(const Routed& layer, const Tensor& counted = {});

}  // namespace ingot::nn
