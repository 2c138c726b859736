#include "ingot/data/mixture.h"

#include <cmath>

namespace ingot {

std::vector<int64_t> mixture_quotas(std::span<const double> weights, int64_t slots) {
  double total = 0;
  for (size_t k = 0; k < weights.size(); ++k) {
    check(std::isfinite(weights[k]) && weights[k] >= 0, ErrorKind::config, "mixture: weight ", k,
          " is ", weights[k], "; weights are 0 or more");
    total += weights[k];
  }
  check(total > 0, ErrorKind::config, "mixture: no weight is above 0; give one to a source");
  std::vector<int64_t> quotas;
  std::vector<std::pair<double, size_t>> remainders;
  int64_t left = slots;
  for (size_t k = 0; k < weights.size(); ++k) {
    const double exact = static_cast<double>(slots) * weights[k] / total;
    quotas.push_back(static_cast<int64_t>(std::floor(exact)));
    remainders.emplace_back(exact - std::floor(exact), k);
    left -= quotas.back();
  }
  std::stable_sort(remainders.begin(), remainders.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  for (int64_t i = 0; i < left; ++i) {
    ++quotas[remainders[static_cast<size_t>(i)].second];
  }
  for (size_t k = 0; k < weights.size(); ++k) {
    check(weights[k] == 0 || quotas[k] > 0, ErrorKind::config, "mixture: weight ", k, " is ",
          weights[k], " of ", total, ", less than one of ", slots,
          " samples; raise it or leave it out");
  }
  return quotas;
}

}  // namespace ingot
