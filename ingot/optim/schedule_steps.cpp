#include "ingot/optim/schedule_steps.h"

#include <algorithm>
#include <cmath>

#include "ingot/optim/warmup.h"

namespace ingot {

double StepsSchedule::factor(int64_t t, int64_t) const {
  if (t < warmup) {
    return warmup_factor(form, t, warmup);
  }
  const int64_t passed = std::count_if(milestones.begin(), milestones.end(),
                                       [t](int64_t milestone) { return milestone <= t; });
  const int64_t steps = passed + (every > 0 ? t / every : 0);
  return std::pow(gamma, static_cast<double>(steps));
}

}  // namespace ingot
