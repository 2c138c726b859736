#pragma once

#include <memory>

#include "ingot/base/describe.h"
#include "ingot/optim/rule.h"

namespace ingot {

struct AdadeltaConfig {
  static constexpr std::string_view name = "adadelta";
  static constexpr std::string_view paper = "Zeiler 2012, 1212.5701";
  static constexpr std::string_view use = "no rate to choose: lr = 1";
  double rho = 0.9;
  double eps = 1e-6;
  double weight_decay = 0;

  template <class V>
  void describe(V& v) {
    v("rho", rho, half_open(0, 1), "decay of both mean squares");
    v("eps", eps, above(0), "added under both roots");
    v("weight_decay", weight_decay, at_least(0),
      "pull of the weights towards 0, added to the gradient");
  }
};

std::unique_ptr<const Rule> make_rule(const AdadeltaConfig& config);

}  // namespace ingot
