#pragma once

#include "ingot/base/view.h"
#include "ingot/device/on_device.h"

namespace ingot::kernels {

// Optimizer steps in one pass over memory: each reads the weight, its gradient and its state once
// and writes weight, state and the rounded copy once. p, g and the state are dense, of one shape
// and one type, f32 or f64. `rounded` is the bf16 or f16 copy of p, or has no data: then p is the
// weight itself. Factors are computed by the caller in double.

struct AdamNumbers {
  double scale = 1;  // the gradient is scale·g
  double l2 = 0;     // and l2·p is added to it
  double beta1 = 0.9;
  double beta2 = 0.999;
  double keep = 1;        // what decoupled decay leaves of p
  double rate = 0;        // the step's length
  double root_scale = 1;  // multiplies √v
  double eps = 1e-8;
};
// d = scale·g + l2·p;  m ← β1·m + (1−β1)·d;  v ← β2·v + (1−β2)·d²;
// p ← keep·p − rate·m / (root_scale·√v + eps)
// With `most` (AMSGrad; no data otherwise): most ← max(most, v), which stands for v in the last
// line.
void adam(const Cpu& on, const AdamNumbers& numbers, const ConstView& g, const View& p,
          const View& m, const View& v, const View& most, const View& rounded);

struct SgdNumbers {
  double scale = 1;     // the gradient is scale·g
  double l2 = 0;        // and l2·p is added to it
  double keep = 1;      // what decoupled decay leaves of p
  double rate = 0;      // learning rate
  double momentum = 0;  // of the Nesterov look-ahead
  double hold = 0;      // of the old buffer: the momentum, 0 at the first step
  double take = 1;      // of the gradient: 1 − dampening, 1 at the first step
  bool nesterov = false;
};
// d = scale·g + l2·p;  b ← hold·b + take·d;  p ← keep·p − rate·(nesterov ? d + momentum·b : b)
// Without a buffer (b has no data): p ← keep·p − rate·d.
void sgd(const Cpu& on, const SgdNumbers& numbers, const ConstView& g, const View& p, const View& b,
         const View& rounded);

// In place, x dense and floating-point:  x ← factor·x  and  x ← min(max(x, −limit), limit), where
// NaN stays.
void scale_in_place(const Cpu& on, double factor, const View& x);
void clamp_magnitude(const Cpu& on, double limit, const View& x);

}  // namespace ingot::kernels
