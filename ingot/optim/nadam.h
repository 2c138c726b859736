#pragma once

#include <memory>

#include "ingot/base/describe.h"
#include "ingot/optim/rule.h"

namespace ingot {

struct NadamConfig {
  static constexpr std::string_view name = "nadam";
  static constexpr std::string_view paper = "Dozat 2016";
  static constexpr std::string_view use = "Adam that looks ahead";
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  double momentum_decay = 4e-3;
  std::string form = "paper";
  double weight_decay = 0;

  template <class V>
  void describe(V& v) {
    v("beta1", beta1, half_open(0, 1), "decay of the first moment");
    v("beta2", beta2, half_open(0, 1), "decay of the second moment");
    v("eps", eps, at_least(0), "added to the root of the second moment");
    v("momentum_decay", momentum_decay, at_least(0), "how fast the first decay rises to beta1");
    v("form", form, one_of({"paper", "torch_1.13"}),
      "product of the decays up to the next one; PyTorch to 1.13 has the present one in it twice");
    v("weight_decay", weight_decay, at_least(0),
      "pull of the weights towards 0, added to the gradient");
  }
};

std::unique_ptr<const Rule> make_rule(const NadamConfig& config);

}  // namespace ingot
