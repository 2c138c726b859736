#pragma once

#include <memory>

#include "ingot/base/describe.h"
#include "ingot/optim/rule.h"

namespace ingot {

struct LarcConfig {
  static constexpr std::string_view name = "larc";
  static constexpr std::string_view paper = "You et al. 2017, 1708.03888; NVIDIA apex";
  static constexpr std::string_view use = "as LARS, with lr as an upper bound";
  double momentum = 0.9;
  double weight_decay = 0;
  double trust_coefficient = 0.02;
  double eps = 1e-8;
  bool bounded = true;
  bool adapt_vectors = false;

  template <class V>
  void describe(V& v) {
    v("momentum", momentum, half_open(0, 1), "of the buffer of scaled gradients");
    v("weight_decay", weight_decay, at_least(0), "times the weights, added to the gradient");
    v("trust_coefficient", trust_coefficient, above(0), "length of a step relative to the weights");
    v("eps", eps, at_least(0), "added to the divisor of the local rate");
    v("bounded", bounded, "the local rate is at most lr; otherwise it multiplies lr");
    v("adapt_vectors", adapt_vectors, "biases and gains too; otherwise they take plain SGD steps");
  }
};

std::unique_ptr<const Rule> make_rule(const LarcConfig& config);

}  // namespace ingot
