#include "ingot/optim/schedule_wsd.h"

#include <algorithm>
#include <cmath>

#include "ingot/optim/warmup.h"

namespace ingot {
namespace {

// What is left of the rate after a share p of the decay.
double left_after(double p, const std::string& shape) {
  if (shape == "1-sqrt") {
    return 1 - std::sqrt(p);
  }
  return shape == "cosine" ? cosine_between(p, 0) : 1 - p;
}

}  // namespace

int64_t WsdSchedule::decay_start(int64_t total) const {
  const int64_t updates =
      decay > 0 ? decay : std::llround(decay_fraction * static_cast<double>(total));
  return std::max(warmup, total - updates);
}

double WsdSchedule::factor(int64_t t, int64_t total) const {
  if (t < warmup) {
    const double p = warmup_factor(form, t, warmup);
    const double risen = warmup_shape == "cosine" ? 1 - cosine_between(p, 0) : p;
    return form == "hf" ? floor + (1 - floor) * risen : risen;
  }
  const int64_t start = decay_start(total);
  if (decay_shape == "exponential") {
    const auto late = static_cast<double>(std::max<int64_t>(0, t + 1 - start));
    return std::max(floor, std::exp2(-late / static_cast<double>(half_life)));
  }
  if (t < start) {
    return 1;
  }
  if (t >= total) {
    return floor;
  }
  return floor + (1 - floor) * left_after(progress_after(start, t, total), decay_shape);
}

}  // namespace ingot
