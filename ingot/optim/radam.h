#pragma once

#include <memory>

#include "ingot/base/describe.h"
#include "ingot/optim/rule.h"

namespace ingot {

struct RadamConfig {
  static constexpr std::string_view name = "radam";
  static constexpr std::string_view paper = "Liu et al. 2020, 1908.03265";
  static constexpr std::string_view use = "Adam without a warm-up";
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  double weight_decay = 0;

  template <class V>
  void describe(V& v) {
    v("beta1", beta1, half_open(0, 1), "decay of the first moment");
    v("beta2", beta2, half_open(0, 1), "decay of the second moment");
    v("eps", eps, at_least(0), "added to the root of the second moment");
    v("weight_decay", weight_decay, at_least(0),
      "pull of the weights towards 0, added to the gradient");
  }
};

std::unique_ptr<const Rule> make_rule(const RadamConfig& config);

}  // namespace ingot
