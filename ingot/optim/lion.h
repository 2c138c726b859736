#pragma once

#include <memory>

#include "ingot/base/describe.h"
#include "ingot/optim/rule.h"

namespace ingot {

struct LionConfig {
  static constexpr std::string_view name = "lion";
  static constexpr std::string_view paper = "Chen et al. 2023, 2302.06675";
  static constexpr std::string_view use = "half of AdamW's state; a third to a tenth of its lr";
  double beta1 = 0.9;
  double beta2 = 0.99;
  double weight_decay = 0.1;

  template <class V>
  void describe(V& v) {
    v("beta1", beta1, half_open(0, 1), "share of the average in the direction");
    v("beta2", beta2, half_open(0, 1), "decay of the average of gradients");
    v("weight_decay", weight_decay, at_least(0), "times the learning rate: share lost per step");
  }
};

std::unique_ptr<const Rule> make_rule(const LionConfig& config);

}  // namespace ingot
