#pragma once

#include "ingot/base/describe.h"
#include "ingot/optim/optimizer.h"

namespace ingot {

// Sharpness-aware minimization. Foret et al. 2020, "Sharpness-aware minimization for efficiently
// improving generalization", arXiv:2010.01412, Algorithm 1; adaptive: Kwon et al. 2021, "ASAM",
// arXiv:2102.11600. Around any rule: the gradient of an update is taken not at w but at w + e,
// where the loss is nearly the largest within a distance ρ:
//
//   e = ρ·g / (‖g‖ + 1e-12);   adaptive: e = ρ·w²·g / (‖|w|·g‖ + 1e-12)
//
// The norm goes over all parameters together. Each step costs a second forward and backward.
struct SamConfig {
  double rho = 0;
  bool adaptive = false;

  template <class V>
  void describe(V& v) {
    v("rho", rho, at_least(0), "distance at which the gradient is taken, SAM; 0: at the weights");
    v("adaptive", adaptive, "measure the distance relative to each weight, ASAM");
  }
};

// While it lives, the optimizer's parameters hold w + e, made from the gradients that they have,
// which are cleared; afterwards the bits of w again, and the gradients that came meanwhile.
class SharpnessAscent {
 public:
  SharpnessAscent(Optimizer& optimizer, const SamConfig& config);
  ~SharpnessAscent();
  SharpnessAscent(const SharpnessAscent&) = delete;
  SharpnessAscent& operator=(const SharpnessAscent&) = delete;

 private:
  Optimizer& optimizer_;
  TensorDict weights_;  // of f32 and f64 parameters; half-precision ones have masters
};

}  // namespace ingot
