#include "ingot/optim/schedule_restarts.h"

#include <cmath>

#include "ingot/optim/warmup.h"

namespace ingot {

double RestartsSchedule::factor(int64_t t, int64_t total) const {
  if (t < warmup) {
    return warmup_factor(form, t, warmup);
  }
  if (first_period > 0) {
    int64_t at = t - warmup;
    int64_t period = first_period;
    while (at >= period) {
      at -= period;
      period *= period_factor;
    }
    return cosine_between(static_cast<double>(at) / static_cast<double>(period), floor);
  }
  const double x = progress_after(warmup, t, total);
  return x >= 1 ? floor : cosine_between(std::fmod(cycles * x, 1.0), floor);
}

}  // namespace ingot
