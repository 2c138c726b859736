#include "ingot/optim/schedule_one_cycle.h"

#include "ingot/optim/warmup.h"

namespace ingot {

double OneCycleSchedule::factor(int64_t t, int64_t total) const {
  const auto at = static_cast<double>(t);
  const auto last = static_cast<double>(total - 1);
  const double peak = rise * static_cast<double>(total) - 1;
  if (at >= last) {
    return floor;
  }
  return at < peak ? cosine_between(1 - at / peak, start)
                   : cosine_between((at - peak) / (last - peak), floor);
}

}  // namespace ingot
