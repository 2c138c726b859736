#pragma once

#include "ingot/nn/module.h"
#include "ingot/nn/randomness.h"

namespace ingot::nn {

// ops/dropout.h in training, the identity otherwise. Draws from (seed, step, micro-batch, site).
class Dropout : public Module {
 public:
  explicit Dropout(double p) : p_(p) {}

  Tensor operator()(const Tensor& x, const Randomness& randomness) const;
  void visit(Visitor& /*v*/) override {}
  void set_site(uint64_t site) { site_ = site; }

 private:
  double p_;
  uint64_t site_ = 0;
};

// Gives every Dropout in `root` the site of its path, so that no two draw the same numbers.
void name_dropout_sites(Module& root);

}  // namespace ingot::nn
