#pragma once

#include "ingot/base/describe.h"

namespace ingot {

// Up along half a cosine, down along another. Smith and Topin 2018, "Super-convergence",
// arXiv:1708.07120; phases placed as in PyTorch.
struct OneCycleSchedule {
  static constexpr std::string_view name = "one_cycle";
  double rise = 0.3;
  double start = 0.04;
  double floor = 4e-6;

  template <class V>
  void describe(V& v) {
    v("rise", rise, in(0, 1), "share of the run in which the rate rises");
    v("start", start, in(0, 1), "first rate, as a share of the peak");
    v("floor", floor, in(0, 1), "last rate, as a share of the peak");
  }

  // The peak is at update rise·T − 1, which may lie between two; the floor at T − 1 and after it.
  double factor(int64_t t, int64_t total) const;
};

}  // namespace ingot
