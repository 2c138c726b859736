#include "ingot/optim/schedule_cosine.h"

#include <algorithm>

#include "ingot/optim/warmup.h"

namespace ingot {

double CosineSchedule::factor(int64_t t, int64_t total) const {
  if (t < warmup) {
    return warmup_factor(form, t, warmup);
  }
  if (form == "hf" || form == "hf_shifted") {
    const int64_t at = form == "hf" ? t : t + 1;
    const double x = progress_after(warmup, at, total);
    return std::max(0.0, cosine_between(2 * cycles * x, floor));
  }
  return t >= total ? floor : cosine_between(2 * cycles * progress_after(warmup, t, total), floor);
}

}  // namespace ingot
