#pragma once

#include <memory>

#include "ingot/base/describe.h"
#include "ingot/optim/rule.h"

namespace ingot {

struct LambConfig {
  static constexpr std::string_view name = "lamb";
  static constexpr std::string_view paper = "You et al. 2019, 1904.00962";
  static constexpr std::string_view use = "AdamW on very large batches";
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-6;
  double weight_decay = 0.01;
  bool bias_correction = true;
  double max_weight_norm = 0;

  template <class V>
  void describe(V& v) {
    v("beta1", beta1, half_open(0, 1), "decay of the first moment");
    v("beta2", beta2, half_open(0, 1), "decay of the second moment");
    v("eps", eps, at_least(0), "added to the root of the second moment");
    v("weight_decay", weight_decay, at_least(0), "times the weights, added to Adam's direction");
    v("bias_correction", bias_correction, "undo the pull of the moments' start at 0");
    v("max_weight_norm", max_weight_norm, at_least(0),
      "a norm of weights above it counts as it; 0: no bound");
  }
};

std::unique_ptr<const Rule> make_rule(const LambConfig& config);

}  // namespace ingot
