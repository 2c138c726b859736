#pragma once

#include <memory>

#include "ingot/base/describe.h"
#include "ingot/optim/rule.h"

namespace ingot {

struct AdemamixConfig {
  static constexpr std::string_view name = "ademamix";
  static constexpr std::string_view paper = "Pagliardini et al. 2024, 2409.03137";
  static constexpr std::string_view use = "long runs, in which old gradients still help";
  double beta1 = 0.9;
  double beta2 = 0.999;
  double beta3 = 0.9999;
  double alpha = 5;
  double eps = 1e-8;
  double weight_decay = 0.1;
  int64_t alpha_warmup = 0;
  int64_t beta3_warmup = 0;

  template <class V>
  void describe(V& v) {
    v("beta1", beta1, half_open(0, 1), "decay of the fast average of gradients");
    v("beta2", beta2, half_open(0, 1), "decay of the second moment");
    v("beta3", beta3, half_open(0, 1), "decay of the slow average of gradients");
    v("alpha", alpha, at_least(0), "weight of the slow average");
    v("eps", eps, at_least(0), "added to the root of the second moment");
    v("weight_decay", weight_decay, at_least(0), "times the learning rate: share lost per step");
    v("alpha_warmup", alpha_warmup, at_least(0), "updates in which alpha grows from 0");
    v("beta3_warmup", beta3_warmup, at_least(0), "updates in which beta3 grows from beta1");
  }
};

std::unique_ptr<const Rule> make_rule(const AdemamixConfig& config);

// The values at update t, 1 for the first: α grows linearly, β3 linearly in its half-life.
double alpha_at(const AdemamixConfig& config, int64_t t);
double beta3_at(const AdemamixConfig& config, int64_t t);

}  // namespace ingot
