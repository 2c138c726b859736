#pragma once

#include <functional>
#include <string>

#include "ingot/tensor/tensor.h"

namespace ingot {

struct GradcheckOptions {
  double step = 1e-5;       // h of the central difference
  double tolerance = 1e-7;  // of |analytic − numeric| relative to max(1, |numeric|)
  uint64_t seed = 1;
  int64_t directions = 3;  // random directions per input
};

// Compares the backward of f with central differences in f64, along random directions u of each
// differentiable input and under a random projection w of the results:
//   ⟨w, (f(x + h u) − f(x − h u)) / 2h⟩  against  ⟨uᵀ, ∂⟨w, f(x)⟩/∂x⟩.
// Floating-point inputs must be f64; integer ones are passed through. Returns "" or what differs:
// "input 1: analytic 0.3, numeric 0.31, error 0.01".
std::string gradcheck(const std::function<TensorList(const TensorList&)>& f, const TensorList& xs,
                      const GradcheckOptions& options = {});

// The same for the gradients of f as a function of its inputs: the second derivative.
std::string gradgradcheck(const std::function<TensorList(const TensorList&)>& f,
                          const TensorList& xs, const GradcheckOptions& options = {});

}  // namespace ingot
