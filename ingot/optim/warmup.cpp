#include "ingot/optim/warmup.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace ingot {

double warmup_factor(std::string_view form, int64_t t, int64_t warmup) {
  const int64_t reached = form == "hf" ? t : t + 1;
  const int64_t wanted = form == "nanogpt" ? warmup + 1 : warmup;
  return static_cast<double>(reached) / static_cast<double>(std::max<int64_t>(1, wanted));
}

double progress_after(int64_t warmup, int64_t t, int64_t total) {
  return static_cast<double>(t - warmup) /
         static_cast<double>(std::max<int64_t>(1, total - warmup));
}

double cosine_between(double x, double floor) {
  return floor + (1 - floor) * (1 + std::cos(std::numbers::pi * x)) / 2;
}

}  // namespace ingot
