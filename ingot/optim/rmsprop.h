#pragma once

#include <memory>

#include "ingot/base/describe.h"
#include "ingot/optim/rule.h"

namespace ingot {

struct RmspropConfig {
  static constexpr std::string_view name = "rmsprop";
  static constexpr std::string_view paper = "Tieleman, Hinton 2012; Graves 2013, 1308.0850";
  static constexpr std::string_view use = "recurrent networks, reinforcement learning";
  double alpha = 0.99;
  double eps = 1e-8;
  bool eps_inside_sqrt = false;
  bool centered = false;
  double momentum = 0;
  double weight_decay = 0;
  bool decoupled = false;

  template <class V>
  void describe(V& v) {
    v("alpha", alpha, half_open(0, 1), "decay of the mean square");
    v("eps", eps, at_least(0), "added to the root of the mean square");
    v("eps_inside_sqrt", eps_inside_sqrt, "add eps under the root, as TensorFlow does");
    v("centered", centered, "divide by the deviation: the squared mean is subtracted");
    v("momentum", momentum, half_open(0, 1), "of the buffer of steps; 0: no buffer");
    v("weight_decay", weight_decay, at_least(0), "pull of the weights towards 0");
    v("decoupled", decoupled, "decay the weights themselves instead of adding to the gradient");
  }
};

std::unique_ptr<const Rule> make_rule(const RmspropConfig& config);

}  // namespace ingot
