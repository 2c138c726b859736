#pragma once

#include <memory>

#include "ingot/base/describe.h"
#include "ingot/optim/rule.h"

namespace ingot {

struct AdamaxConfig {
  static constexpr std::string_view name = "adamax";
  static constexpr std::string_view paper = "Kingma, Ba 2015, 1412.6980";
  static constexpr std::string_view use = "gradients with rare large values";
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  double weight_decay = 0;

  template <class V>
  void describe(V& v) {
    v("beta1", beta1, half_open(0, 1), "decay of the first moment");
    v("beta2", beta2, half_open(0, 1), "decay of the largest magnitude");
    v("eps", eps, above(0), "added to each magnitude");
    v("weight_decay", weight_decay, at_least(0),
      "pull of the weights towards 0, added to the gradient");
  }
};

std::unique_ptr<const Rule> make_rule(const AdamaxConfig& config);

}  // namespace ingot
