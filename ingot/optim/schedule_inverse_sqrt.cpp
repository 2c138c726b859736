#include "ingot/optim/schedule_inverse_sqrt.h"

#include <algorithm>
#include <cmath>

#include "ingot/optim/warmup.h"

namespace ingot {

double InverseSqrtSchedule::factor(int64_t t, int64_t) const {
  if (form == "noam") {
    const auto s = static_cast<double>(t + 1);
    const double rising = warmup == 0 ? HUGE_VAL : s * std::pow(static_cast<double>(warmup), -1.5);
    return std::min(1 / std::sqrt(s), rising) / std::sqrt(static_cast<double>(width));
  }
  if (t < warmup) {
    return warmup_factor(form, t, warmup);
  }
  const auto scale = static_cast<double>(timescale > 0 ? timescale : std::max<int64_t>(1, warmup));
  return 1 / std::sqrt((static_cast<double>(t - warmup) + scale) / scale);
}

}  // namespace ingot
