#pragma once

#include "ingot/base/describe.h"

namespace ingot {

// Straight lines between given points.
struct PiecewiseSchedule {
  static constexpr std::string_view name = "piecewise";
  std::vector<int64_t> at = {0};
  std::vector<double> factors = {1};

  template <class V>
  void describe(V& v) {
    v("at", at, at_least(0), "updates at which the rate is given, rising");
    v("factors", factors, in(0, 1), "the rate there, as a share of the peak; as many");
  }

  // Linear between (at_i, factors_i); the first factor before the first point, the last after the
  // last.
  double factor(int64_t t, int64_t total) const;
};

}  // namespace ingot
