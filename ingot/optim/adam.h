#pragma once

#include <memory>

#include "ingot/base/describe.h"
#include "ingot/optim/rule.h"

namespace ingot {

struct AdamConfig {
  static constexpr std::string_view name = "adam";
  static constexpr std::string_view paper = "Kingma, Ba 2015, 1412.6980";
  static constexpr std::string_view use = "where decay belongs to the loss; published recipes";
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  double weight_decay = 0;
  bool amsgrad = false;
  bool eps_hat = false;
  bool bias_correction = true;

  template <class V>
  void describe(V& v) {
    v("beta1", beta1, half_open(0, 1), "decay of the first moment");
    v("beta2", beta2, half_open(0, 1), "decay of the second moment");
    v("eps", eps, at_least(0), "added to the root of the second moment");
    v("weight_decay", weight_decay, at_least(0), "times the weights, added to the gradient (L2)");
    v("amsgrad", amsgrad, "divide by the largest second moment so far");
    v("eps_hat", eps_hat, "add eps before the bias correction instead of after it");
    v("bias_correction", bias_correction, "undo the pull of the moments' start at 0");
  }
};

std::unique_ptr<const Rule> make_rule(const AdamConfig& config);

}  // namespace ingot
