#include "ingot/optim/schedule_piecewise.h"

#include <algorithm>

namespace ingot {

double PiecewiseSchedule::factor(int64_t t, int64_t) const {
  const auto next = std::upper_bound(at.begin(), at.end(), t);
  if (next == at.begin()) {
    return factors.front();
  }
  const auto i = static_cast<size_t>(next - at.begin());
  if (next == at.end()) {
    return factors.back();
  }
  const double share = static_cast<double>(t - at[i - 1]) / static_cast<double>(at[i] - at[i - 1]);
  return factors[i - 1] + share * (factors[i] - factors[i - 1]);
}

}  // namespace ingot
