#pragma once

#include <memory>

#include "ingot/base/describe.h"
#include "ingot/optim/rule.h"

namespace ingot {

struct SoapConfig {
  static constexpr std::string_view name = "soap";
  static constexpr std::string_view paper = "Vyas et al. 2024, 2409.11321";
  static constexpr std::string_view use = "as Shampoo, and steadier between new bases";
  double beta1 = 0.95;
  double beta2 = 0.95;
  double eps = 1e-8;
  double weight_decay = 0.01;
  int64_t every = 10;
  int64_t max_dim = 2048;

  template <class V>
  void describe(V& v) {
    v("beta1", beta1, half_open(0, 1), "decay of the first moment");
    v("beta2", beta2, half_open(0, 1), "decay of the second moment and of the statistics");
    v("eps", eps, at_least(0), "added to the root of the second moment");
    v("weight_decay", weight_decay, at_least(0), "times the learning rate: share lost per step");
    v("every", every, at_least(1), "updates between new bases");
    v("max_dim", max_dim, at_least(1), "sides longer than this keep their own basis");
  }
};

std::unique_ptr<const Rule> make_rule(const SoapConfig& config);

}  // namespace ingot
