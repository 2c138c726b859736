#include "ingot/optim/schedule_linear.h"

#include <cmath>

#include "ingot/optim/warmup.h"

namespace ingot {

double LinearSchedule::factor(int64_t t, int64_t total) const {
  if (t < warmup) {
    return warmup_factor(form, t, warmup);
  }
  if (t >= total) {
    return floor;
  }
  return floor + (1 - floor) * std::pow(1 - progress_after(warmup, t, total), power);
}

}  // namespace ingot
