#pragma once

#include <memory>

#include "ingot/base/describe.h"
#include "ingot/optim/rule.h"

namespace ingot {

struct SgdConfig {
  static constexpr std::string_view name = "sgd";
  static constexpr std::string_view paper = "Robbins, Monro 1951; Sutskever et al. 2013";
  static constexpr std::string_view use = "convex problems, convolutional networks, least memory";
  double momentum = 0;
  double dampening = 0;
  bool nesterov = false;
  double weight_decay = 0;
  bool decoupled = false;

  template <class V>
  void describe(V& v) {
    v("momentum", momentum, half_open(0, 1), "of the gradient buffer; 0: no buffer");
    v("dampening", dampening, in(0, 1), "share of each new gradient kept out of the buffer");
    v("nesterov", nesterov, "step along the gradient plus momentum times the new buffer");
    v("weight_decay", weight_decay, at_least(0), "pull of the weights towards 0");
    v("decoupled", decoupled, "decay the weights themselves instead of adding to the gradient");
  }
};

// Throws Error(config) for Nesterov without momentum or with dampening.
std::unique_ptr<const Rule> make_rule(const SgdConfig& config);

}  // namespace ingot
