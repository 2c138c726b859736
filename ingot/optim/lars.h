#pragma once

#include <memory>

#include "ingot/base/describe.h"
#include "ingot/optim/rule.h"

namespace ingot {

struct LarsConfig {
  static constexpr std::string_view name = "lars";
  static constexpr std::string_view paper = "You, Gitman, Ginsburg 2017, 1708.03888";
  static constexpr std::string_view use = "SGD on very large batches";
  double momentum = 0.9;
  double weight_decay = 0;
  double trust_coefficient = 0.001;
  bool adapt_vectors = false;

  template <class V>
  void describe(V& v) {
    v("momentum", momentum, half_open(0, 1), "of the buffer of steps");
    v("weight_decay", weight_decay, at_least(0), "times the weights, added to the gradient");
    v("trust_coefficient", trust_coefficient, above(0), "length of a step relative to the weights");
    v("adapt_vectors", adapt_vectors, "biases and gains too; otherwise they take plain SGD steps");
  }
};

std::unique_ptr<const Rule> make_rule(const LarsConfig& config);

}  // namespace ingot
