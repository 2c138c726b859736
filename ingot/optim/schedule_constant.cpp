#include "ingot/optim/schedule_constant.h"

#include "ingot/optim/warmup.h"

namespace ingot {

double ConstantSchedule::factor(int64_t t, int64_t) const {
  return t < warmup ? start + (1 - start) * warmup_factor(form, t, warmup) : 1;
}

}  // namespace ingot
