#pragma once

#include "ingot/tensor/tensor.h"

namespace ingot {

// KL(π ‖ ρ) of a policy π from a reference ρ, estimated at tokens that π drew. With
// u = log ρ − log π of each token,
//   k1   −u             right on average, but of either sign
//   k2   u² / 2         biased, and its gradient on average is that of the divergence
//   k3   eᵘ − 1 − u     right on average and never negative: GRPO's
// Schulman 2020, "Approximating KL divergence".
enum class KlEstimator : uint8_t { k1, k2, k3 };

// "k1", "k2", "k3"; throws Error(config) on another word.
KlEstimator kl_estimator_of(const std::string& name);

// logps: with history   reference: of the same shape   → the same shape
Tensor kl_estimates(const Tensor& logps, const Tensor& reference, KlEstimator kind);

}  // namespace ingot
