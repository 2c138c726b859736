#pragma once

#include <memory>

#include "ingot/base/describe.h"
#include "ingot/optim/rule.h"

namespace ingot {

struct SophiaConfig {
  static constexpr std::string_view name = "sophia_g";
  static constexpr std::string_view paper = "Liu et al. 2023, 2305.14342";
  static constexpr std::string_view use = "language models; a further backward every tenth step";
  double beta1 = 0.965;
  double beta2 = 0.99;
  double gamma = 0.05;
  double eps = 1e-12;
  std::string form = "paper";
  int64_t every = 10;
  double weight_decay = 0.1;

  template <class V>
  void describe(V& v) {
    v("beta1", beta1, half_open(0, 1), "decay of the average of gradients");
    v("beta2", beta2, half_open(0, 1), "decay of the average of curvatures");
    v("gamma", gamma, above(0), "times the curvature: what the average of gradients is divided by");
    v("eps", eps, above(0), "least divisor, or what is added to it");
    v("form", form, one_of({"paper", "code"}),
      "divide by max(gamma h, eps), or by gamma h + eps as the authors' code does");
    v("every", every, at_least(1), "updates between estimates of the curvature");
    v("weight_decay", weight_decay, at_least(0), "times the learning rate: share lost per step");
  }
};

// The same by Hutchinson's estimate, with the paper's γ for it.
struct SophiaHConfig : SophiaConfig {
  static constexpr std::string_view name = "sophia_h";
  static constexpr std::string_view use = "the same by differences of gradients; f32 weights";
  SophiaHConfig() { gamma = 0.01; }
};

std::unique_ptr<const Rule> make_rule(const SophiaConfig& config);
std::unique_ptr<const Rule> make_rule(const SophiaHConfig& config);

}  // namespace ingot
