#pragma once

#include <memory>

#include "ingot/base/describe.h"
#include "ingot/optim/rule.h"

namespace ingot {

struct ShampooConfig {
  static constexpr std::string_view name = "shampoo";
  static constexpr std::string_view paper = "Gupta et al. 2018, 1802.09568; Shi et al. 2023";
  static constexpr std::string_view use = "fewest steps, where matrices are below a thousand wide";
  double beta1 = 0.9;
  double beta2 = 0.99;
  double epsilon = 1e-6;
  std::string graft = "adam";
  double grafting_beta2 = 0.99;
  double grafting_eps = 1e-8;
  double weight_decay = 0.1;
  int64_t every = 10;
  int64_t max_dim = 1024;

  template <class V>
  void describe(V& v) {
    v("beta1", beta1, half_open(0, 1), "decay of the average of gradients; 0: the gradient itself");
    v("beta2", beta2, in(0, 1), "decay of the statistics; 1: they are sums, as first published");
    v("epsilon", epsilon, above(0),
      "times the identity, added to the statistics (to sums once, at the start)");
    v("graft", graft, one_of({"adam", "none"}), "whose step length each update takes");
    v("grafting_beta2", grafting_beta2, half_open(0, 1), "decay of Adam's second moment");
    v("grafting_eps", grafting_eps, at_least(0), "added to the root of Adam's second moment");
    v("weight_decay", weight_decay, at_least(0), "times the learning rate: share lost per step");
    v("every", every, at_least(1), "updates between new roots of the statistics");
    v("max_dim", max_dim, at_least(1), "sides longer than this have no statistics");
  }
};

std::unique_ptr<const Rule> make_rule(const ShampooConfig& config);

}  // namespace ingot
