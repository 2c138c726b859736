#pragma once

#include "ingot/tensor/tensor.h"

namespace ingot {

// How much better than expected what a policy did was. Everything here is without history.

// Generalized advantage estimation. With δ_t = r_t + γ V_{t+1} − V_t and V = 0 after the end,
//   A_t = Σ_{i≥0} (γ λ)ⁱ δ_{t+i}        returns R_t = A_t + V_t
// so that λ = 0 is the one-step error δ and λ = 1 the discounted return less the value. Schulman et
// al. 2016, arXiv:1506.02438, equation 16.
struct Advantages {
  Tensor advantages;  // [B, T]
  Tensor returns;     // [B, T], what values learn
};
// rewards, values: [B, T]   mask: [B, T], 1 where a token was written by the policy. Others have
// advantage and return 0, and what is before them goes on with what is after.
Advantages gae(const Tensor& rewards, const Tensor& values, const Tensor& mask, double gamma,
               double lambda);

// (x − mean) / √(variance + 10⁻⁸) over the places of the mask, with n − 1; 0 elsewhere.
Tensor whitened(const Tensor& x, const Tensor& mask);

// Of G answers to each of P prompts, rewards [P, G] → [P, G]. A group of equal rewards has
// advantages of exactly 0: nothing is learnt from it.

// r_i − mean(r): Dr. GRPO, Liu et al. 2025, arXiv:2503.20783, equation 3.
Tensor centered_advantages(const Tensor& rewards);
// (r_i − mean(r)) / (std(r) + eps): GRPO, Shao et al. 2024, arXiv:2402.03300, section 4.1.2. The
// deviation is that of a sample (G − 1), as implementations have it, or of the population (G).
enum class Deviation : uint8_t { sample, population };
Tensor normalized_advantages(const Tensor& rewards, double eps = 1e-4,
                             Deviation deviation = Deviation::sample);
// r_i − the mean of the others = G/(G − 1) (r_i − mean(r)): RLOO, Ahmadian et al. 2024,
// arXiv:2402.14740, equation 8.
Tensor leave_one_out_advantages(const Tensor& rewards);

}  // namespace ingot
