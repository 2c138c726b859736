#include "ingot/eval/statistics.h"

#include <cmath>

namespace ingot {

Estimate mean_of(std::span<const double> values) {
  const auto n = static_cast<double>(values.size());
  if (values.empty()) {
    return {};
  }
  double sum = 0;
  for (const double value : values) {
    sum += value;
  }
  const double mean = sum / n;
  double squares = 0;
  for (const double value : values) {
    squares += (value - mean) * (value - mean);
  }
  return {mean, values.size() < 2 ? 0 : std::sqrt(squares / (n - 1) / n)};
}

Estimate perplexity_of(std::span<const double> log_probabilities) {
  const Estimate mean = mean_of(log_probabilities);
  const double perplexity = std::exp(-mean.value);
  return {perplexity, perplexity * mean.error};
}

Interval wilson_interval(double share, double n) {
  if (n <= 0) {
    return {0, 1};
  }
  constexpr double z = 1.959963984540054;  // of 95 %
  const double centre = share + z * z / (2 * n);
  const double spread = z * std::sqrt(share * (1 - share) / n + z * z / (4 * n * n));
  const double scale = 1 + z * z / n;
  return {(centre - spread) / scale, (centre + spread) / scale};
}

}  // namespace ingot
