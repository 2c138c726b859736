#include "ingot/generate/log_probability.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "ingot/base/error.h"
#include "ingot/generate/sampler.h"

namespace ingot {

LogProbabilities::LogProbabilities(std::span<const float> logits) : logits_(logits) {
  const double most = logits[static_cast<size_t>(likeliest(logits))];
  double sum = 0;
  for (const float logit : logits) {
    sum += std::exp(logit - most);
  }
  log_total_ = most + std::log(sum);
}

double LogProbabilities::of(int64_t token) const {
  check(token >= 0 && token < static_cast<int64_t>(logits_.size()), ErrorKind::argument,
        "log-probability: token ", token, " is outside the vocabulary of ", logits_.size());
  return logits_[static_cast<size_t>(token)] - log_total_;
}

LogProbabilities::Ranked LogProbabilities::best(int64_t k) const {
  std::vector<int64_t> order(logits_.size());
  std::iota(order.begin(), order.end(), int64_t{0});
  const auto count = std::min<int64_t>(k, static_cast<int64_t>(order.size()));
  const auto logit = [&](int64_t token) { return logits_[static_cast<size_t>(token)]; };
  std::partial_sort(order.begin(), order.begin() + count, order.end(), [&](int64_t a, int64_t b) {
    return logit(a) != logit(b) ? logit(a) > logit(b) : a < b;
  });
  Ranked out;
  for (int64_t i = 0; i < count; ++i) {
    out.emplace_back(order[static_cast<size_t>(i)], of(order[static_cast<size_t>(i)]));
  }
  return out;
}

}  // namespace ingot
