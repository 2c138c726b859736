#pragma once

#include "ingot/base/describe.h"

namespace ingot {

// Cosines that start again at the peak. Loshchilov and Hutter 2017, "SGDR", arXiv:1608.03983,
// section 3.
struct RestartsSchedule {
  static constexpr std::string_view name = "cosine_restarts";
  int64_t warmup = 0;
  double floor = 0;
  int64_t first_period = 0;
  int64_t period_factor = 1;
  double cycles = 1;
  std::string form = "standard";

  template <class V>
  void describe(V& v) {
    v("warmup", warmup, at_least(0), "updates of rising rate at the start");
    v("floor", floor, in(0, 1), "rate at the end of each period, as a share of the peak");
    v("first_period", first_period, at_least(0), "updates of the first period; 0: use cycles");
    v("period_factor", period_factor, at_least(1), "each period is so many times the one before");
    v("cycles", cycles, above(0), "equal periods in the run, where first_period is 0");
    v("form", form, one_of({"standard", "hf", "nanogpt"}), "how updates are counted");
  }

  // With s = t − W counted from the start of its period of length P:
  // floor + (1−floor)·(1 + cos(π·s/P))/2. With equal periods the floor from T on.
  double factor(int64_t t, int64_t total) const;
};

}  // namespace ingot
