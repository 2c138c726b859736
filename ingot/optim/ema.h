#pragma once

#include <memory>

#include "ingot/base/describe.h"
#include "ingot/optim/rule.h"

namespace ingot {

struct EmaConfig {
  double decay = 0;
  std::string form = "constant";
  double inv_gamma = 1;
  double power = 2.0 / 3;

  template <class V>
  void describe(V& v) {
    v("decay", decay, half_open(0, 1), "of the average of weights that is evaluated; 0: none");
    v("form", form, one_of({"constant", "tf_num_updates", "inverse_gamma", "debiased"}),
      "how the first updates count");
    v("inv_gamma", inv_gamma, above(0), "of inverse_gamma: updates after which it slows down");
    v("power", power, above(0), "of inverse_gamma: how it slows down");
  }
};

// `inner` with an average of the weights beside it, which is what evaluated() gives.
std::unique_ptr<const Rule> with_ema(std::unique_ptr<const Rule> inner, const EmaConfig& config);

// The decay of update t, 1 for the first.
double ema_decay(const EmaConfig& config, int64_t t);

}  // namespace ingot
