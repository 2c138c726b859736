#pragma once

#include <span>

namespace ingot {

// A mean and its standard error, s/√n with s² = Σ(x − x̄)²/(n − 1): as lm-evaluation-harness has it.
// The error of fewer than two values is 0.
struct Estimate {
  double value = 0;
  double error = 0;
};
Estimate mean_of(std::span<const double> values);

// e^(−x̄), as perplexity of mean log-probabilities; its error is e^(−x̄) times that of the mean (the
// delta method; lm-evaluation-harness draws bootstrap samples).
Estimate perplexity_of(std::span<const double> log_probabilities);

// The 95 % interval of a share p of n (Wilson 1927).
struct Interval {
  double low = 0, high = 0;
};
Interval wilson_interval(double share, double n);

}  // namespace ingot
