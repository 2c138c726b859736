#pragma once

#include "ingot/optim/rule.h"

namespace ingot {

// The two moments that Adam and its descendants keep, and the step they make of them.
struct MomentNumbers {
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  bool amsgrad = false;
  bool eps_hat = false;
  bool bias_correction = true;
};

// "m" and "v" of the parameter's shape; with AMSGrad "most" too.
std::vector<Slot> moment_slots(const Weight& p, bool amsgrad);

// m ← β1·m + (1−β1)·d;  v ← β2·v + (1−β2)·d²,  d = scale·g + l2·p
// p ← keep·p − lr·m̂ / (√v̂ + ε),  m̂ = m / (1−β1ᵗ),  v̂ = v / (1−β2ᵗ)
// eps_hat: p ← keep·p − lr·√(1−β2ᵗ)/(1−β1ᵗ)·m / (√v + ε). Without bias correction m̂ = m, v̂ = v.
void moment_step(Weight& p, const Tensor& g, TensorList& slots, const Step& step,
                 const MomentNumbers& numbers, double l2, double keep);

}  // namespace ingot
