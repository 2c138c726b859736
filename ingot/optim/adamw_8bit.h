#pragma once

#include <memory>

#include "ingot/base/describe.h"
#include "ingot/optim/rule.h"

namespace ingot {

struct AdamW8bitConfig {
  static constexpr std::string_view name = "adamw_8bit";
  static constexpr std::string_view paper = "Dettmers et al. 2022, 2110.02861";
  static constexpr std::string_view use = "AdamW in a quarter of its state";
  double beta1 = 0.9;
  double beta2 = 0.95;
  double eps = 1e-8;
  double weight_decay = 0.1;
  int64_t block = 256;
  int64_t min_elements = 4096;

  template <class V>
  void describe(V& v) {
    v("beta1", beta1, half_open(0, 1), "decay of the first moment");
    v("beta2", beta2, half_open(0, 1), "decay of the second moment");
    v("eps", eps, at_least(0), "added to the root of the second moment");
    v("weight_decay", weight_decay, at_least(0), "times the learning rate: share lost per step");
    v("block", block, in(1, 4096), "elements that share a scale");
    v("min_elements", min_elements, at_least(0), "smaller tensors keep their moments in full");
  }
};

std::unique_ptr<const Rule> make_rule(const AdamW8bitConfig& config);

}  // namespace ingot
