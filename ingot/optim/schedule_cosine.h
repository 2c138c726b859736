#pragma once

#include "ingot/base/describe.h"

namespace ingot {

// Warm-up, then half a cosine down to the floor. Loshchilov and Hutter 2017, "SGDR",
// arXiv:1608.03983, equation 5 with one period.
struct CosineSchedule {
  static constexpr std::string_view name = "cosine";
  int64_t warmup = 0;
  double floor = 0;
  double cycles = 0.5;
  std::string form = "standard";

  template <class V>
  void describe(V& v) {
    v("warmup", warmup, at_least(0), "updates of rising rate at the start");
    v("floor", floor, in(0, 1), "last rate, as a share of the peak");
    v("cycles", cycles, above(0), "periods of the cosine; 0.5: from the peak down to the floor");
    v("form", form, one_of({"standard", "hf", "hf_shifted", "nanogpt"}), "how updates are counted");
  }

  // x = (t−W)/(T−W) (hf_shifted: (t−W+1)/(T−W));  floor + (1−floor)·(1 + cos 2π·cycles·x)/2.
  // Past T: the floor (standard, nanogpt); hf and hf_shifted go on along the cosine.
  double factor(int64_t t, int64_t total) const;
};

}  // namespace ingot
