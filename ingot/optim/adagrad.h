#pragma once

#include <memory>

#include "ingot/base/describe.h"
#include "ingot/optim/rule.h"

namespace ingot {

struct AdagradConfig {
  static constexpr std::string_view name = "adagrad";
  static constexpr std::string_view paper = "Duchi, Hazan, Singer 2011";
  static constexpr std::string_view use = "convex problems with rare features";
  double eps = 1e-10;
  double lr_decay = 0;
  double initial_accumulator_value = 0;
  double weight_decay = 0;
  bool decoupled = false;

  template <class V>
  void describe(V& v) {
    v("eps", eps, at_least(0), "added to the root of the sum of squares");
    v("lr_decay", lr_decay, at_least(0), "the rate is divided by 1 + lr_decay times past updates");
    v("initial_accumulator_value", initial_accumulator_value, at_least(0),
      "what the sum of squares starts from");
    v("weight_decay", weight_decay, at_least(0), "pull of the weights towards 0");
    v("decoupled", decoupled, "decay the weights themselves instead of adding to the gradient");
  }
};

std::unique_ptr<const Rule> make_rule(const AdagradConfig& config);

}  // namespace ingot
