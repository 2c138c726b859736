#pragma once

#include "ingot/base/describe.h"

namespace ingot {

// Warm-up, then the peak rate to the end.
struct ConstantSchedule {
  static constexpr std::string_view name = "constant";
  int64_t warmup = 0;
  double start = 0;
  std::string form = "standard";

  template <class V>
  void describe(V& v) {
    v("warmup", warmup, at_least(0), "updates of rising rate at the start");
    v("start", start, in(0, 1), "rate that the warm-up rises from, as a share of the peak");
    v("form", form, one_of({"standard", "hf", "nanogpt"}), "how updates are counted");
  }

  // t < W: start + (1−start)·warm-up;  1 afterwards.
  double factor(int64_t t, int64_t total) const;
};

}  // namespace ingot
