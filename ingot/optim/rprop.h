#pragma once

#include <memory>

#include "ingot/base/describe.h"
#include "ingot/optim/rule.h"

namespace ingot {

struct RpropConfig {
  static constexpr std::string_view name = "rprop";
  static constexpr std::string_view paper = "Riedmiller, Braun 1993";
  static constexpr std::string_view use = "whole data sets at once, without noise";
  double shrink = 0.5;
  double grow = 1.2;
  double least = 1e-4;
  double most = 5000;

  template <class V>
  void describe(V& v) {
    v("shrink", shrink, in(0, 1), "factor of a step whose gradient changed its sign");
    v("grow", grow, at_least(1), "factor of a step whose gradient did not");
    v("least", least, at_least(0), "smallest step, in units of lr");
    v("most", most, above(0), "largest step, in units of lr");
  }
};

std::unique_ptr<const Rule> make_rule(const RpropConfig& config);

}  // namespace ingot
