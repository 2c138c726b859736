#pragma once

#include <memory>

#include "ingot/base/describe.h"
#include "ingot/optim/aux_adamw.h"

namespace ingot {

struct NormuonConfig {
  static constexpr std::string_view name = "normuon";
  static constexpr std::string_view paper = "Li et al. 2025, 2510.05491";
  static constexpr std::string_view use = "as Muon, with one more number a row";
  double momentum = 0.95;
  double beta2 = 0.95;
  int64_t ns_steps = 5;
  std::string ns_dtype = "f32";
  std::string scale = "moonshot";
  double weight_decay = 0.1;
  AuxAdamW aux = {};

  template <class V>
  void describe(V& v) {
    v("momentum", momentum, half_open(0, 1), "decay of the average of gradients of a matrix");
    v("beta2", beta2, half_open(0, 1), "decay of the mean square of each row of the update");
    v("ns_steps", ns_steps, in(1, 20), "Newton-Schulz steps that make the update orthogonal");
    v("ns_dtype", ns_dtype, one_of({"f32", "bf16"}), "type of their matrix products");
    v("scale", scale, one_of({"moonshot", "keller", "none"}),
      "factor of the update of an M x N matrix: 0.2 sqrt(max(M, N)), the size of AdamW's, so that "
      "one lr serves both; sqrt(max(1, M/N)); or 1");
    v("weight_decay", weight_decay, at_least(0), "times the learning rate: share lost per step");
    aux.describe(v);
  }
};

std::unique_ptr<const Rule> make_rule(const NormuonConfig& config);

}  // namespace ingot
