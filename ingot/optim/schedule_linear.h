#pragma once

#include "ingot/base/describe.h"

namespace ingot {

// Warm-up, then down to the floor along a straight line or a power of one. Devlin et al. 2019,
// "BERT", arXiv:1810.04805, appendix A.2.
struct LinearSchedule {
  static constexpr std::string_view name = "linear";
  int64_t warmup = 0;
  double floor = 0;
  double power = 1;
  std::string form = "standard";

  template <class V>
  void describe(V& v) {
    v("warmup", warmup, at_least(0), "updates of rising rate at the start");
    v("floor", floor, in(0, 1), "last rate, as a share of the peak");
    v("power", power, above(0), "exponent of what is left of the way; 1: a straight line");
    v("form", form, one_of({"standard", "hf", "nanogpt"}), "how updates are counted");
  }

  // floor + (1−floor)·(1 − (t−W)/(T−W))^power;  the floor from T on.
  double factor(int64_t t, int64_t total) const;
};

}  // namespace ingot
