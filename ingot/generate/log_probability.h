#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace ingot {

// ln p of tokens under the softmax of logits as the model gives them: before temperature, filters,
// penalties and masks. Sums in double.
class LogProbabilities {
 public:
  // Keeps a view: the logits must outlive this. Throws Error(numeric) as likeliest() does.
  explicit LogProbabilities(std::span<const float> logits);

  double of(int64_t token) const;
  // The k likeliest tokens, best first, of equals the earlier.
  using Ranked = std::vector<std::pair<int64_t, double>>;
  Ranked best(int64_t k) const;

 private:
  std::span<const float> logits_;
  double log_total_;  // ln Σ exp(l)
};

}  // namespace ingot
