#pragma once

#include <memory>

#include "ingot/base/describe.h"
#include "ingot/optim/rule.h"

namespace ingot {

struct AdamWConfig {
  static constexpr std::string_view name = "adamw";
  static constexpr std::string_view paper = "Loshchilov, Hutter 2019, 1711.05101";
  static constexpr std::string_view use = "the default";
  double beta1 = 0.9;
  double beta2 = 0.95;
  double eps = 1e-8;
  double weight_decay = 0.1;
  bool amsgrad = false;
  bool bias_correction = true;

  template <class V>
  void describe(V& v) {
    v("beta1", beta1, half_open(0, 1), "decay of the first moment");
    v("beta2", beta2, half_open(0, 1), "decay of the second moment");
    v("eps", eps, at_least(0), "added to the root of the second moment");
    v("weight_decay", weight_decay, at_least(0), "times the learning rate: share lost per step");
    v("amsgrad", amsgrad, "divide by the largest second moment so far");
    v("bias_correction", bias_correction, "undo the pull of the moments' start at 0");
  }
};

std::unique_ptr<const Rule> make_rule(const AdamWConfig& config);

}  // namespace ingot
