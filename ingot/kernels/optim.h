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

// b ← hold·b + take·d;  u ← from_gradient·d + from_buffer·b,  d = scale·g: the direction of a rule
// that does something with it before it moves the weights. All of one shape and type.
struct MomentumNumbers {
  double scale = 1;
  double hold = 0.95;
  double take = 0.05;
  double from_gradient = 0;
  double from_buffer = 1;
};
void momentum(const Cpu& on, const MomentumNumbers& numbers, const ConstView& g, const View& b,
              const View& u);

// Adam's direction alone, for a rule that measures it before it moves:
// r ← correct·m / (root_scale·√v + eps) + decay·p, m and v as in adam(). p stays.
struct AdamDirection {
  double scale = 1;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double correct = 1;
  double root_scale = 1;
  double eps = 1e-6;
  double decay = 0;
};
void adam_direction(const Cpu& on, const AdamDirection& numbers, const ConstView& g, const View& p,
                    const View& m, const View& v, const View& r);

struct LionNumbers {
  double scale = 1;
  double beta1 = 0.9;
  double beta2 = 0.99;
  double keep = 1;
  double rate = 0;
};
// d = scale·g;  p ← keep·p − rate·sign(β1·m + (1−β1)·d);  m ← β2·m + (1−β2)·d;  sign(0) = 0
void lion(const Cpu& on, const LionNumbers& numbers, const ConstView& g, const View& p,
          const View& m, const View& rounded);

struct AdagradNumbers {
  double scale = 1;
  double l2 = 0;
  double keep = 1;
  double rate = 0;
  double eps = 1e-10;
};
// d = scale·g + l2·p;  s ← s + d²;  p ← keep·p − rate·d / (√s + eps)
void adagrad(const Cpu& on, const AdagradNumbers& numbers, const ConstView& g, const View& p,
             const View& s, const View& rounded);

struct RmspropNumbers {
  double scale = 1;
  double l2 = 0;
  double keep = 1;
  double alpha = 0.99;
  double eps = 1e-8;
  double momentum = 0;
  double rate = 0;
  bool eps_inside = false;
};
// d = scale·g + l2·p;  v ← α·v + (1−α)·d²;  a ← α·a + (1−α)·d;  q = v, or v − a² with an `average`
// r = d / (√q + eps), or d / √(q + eps) with eps_inside;  b ← μ·b + r
// p ← keep·p − rate·b, or − rate·r without a buffer. `average` and b may have no data.
void rmsprop(const Cpu& on, const RmspropNumbers& numbers, const ConstView& g, const View& p,
             const View& v, const View& average, const View& b, const View& rounded);

struct AdemamixNumbers {
  double scale = 1;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double beta3 = 0.9999;
  double alpha = 5;
  double correct = 1;     // multiplies the fast momentum
  double root_scale = 1;  // multiplies √v
  double eps = 1e-8;
  double keep = 1;
  double rate = 0;
};
// d = scale·g;  m ← β1·m + (1−β1)·d;  s ← β3·s + (1−β3)·d;  v ← β2·v + (1−β2)·d²
// p ← keep·p − rate·(correct·m + α·s) / (root_scale·√v + eps)
void ademamix(const Cpu& on, const AdemamixNumbers& numbers, const ConstView& g, const View& p,
              const View& m, const View& s, const View& v, const View& rounded);

struct SophiaNumbers {
  double scale = 1;
  double beta1 = 0.965;
  double gamma = 0.05;
  double eps = 1e-12;
  bool add_eps = false;
  double keep = 1;
  double rate = 0;
};
// m ← β1·m + (1−β1)·scale·g;  p ← keep·p − rate·clip(m / q, −1, 1), where q = max(γ·h, eps), or
// γ·h + eps with add_eps. h stays.
void sophia(const Cpu& on, const SophiaNumbers& numbers, const ConstView& g, const View& p,
            const View& m, const View& h, const View& rounded);

struct ScheduleFreeNumbers {
  double scale = 1;
  double beta = 0.9;  // y lies this far from z towards x
  double beta2 = 0.999;
  double inner = 0;    // decay of the numerator's average
  double correct = 1;  // multiplies that average
  double root_scale = 1;
  double eps = 1e-8;
  double decay = 0;  // share of y (or z) that z loses
  bool decay_at_z = false;
  double rate = 0;
  double mix = 1;  // weight of z in the average x
};
// d = scale·g;  v ← β2·v + (1−β2)·d²;  m ← inner·m + (1−inner)·d;  n = correct·m, or d without m
// z' = z − decay·(y or z) − rate·n / (root_scale·√v + eps);  without v: z' = … − rate·n
// x = (1−mix)·x + mix·z' and y = β·x + (1−β)·z', which needs no x:
// y ← (1−mix)·(y − (1−β)·z) + (β·mix + 1 − β)·z';  z ← z'.   v and m may have no data.
void schedule_free(const Cpu& on, const ScheduleFreeNumbers& numbers, const ConstView& g,
                   const View& y, const View& z, const View& v, const View& m, const View& rounded);

// In place, x dense and floating-point:  x ← factor·x  and  x ← min(max(x, −limit), limit), where
// NaN stays.
void scale_in_place(const Cpu& on, double factor, const View& x);
void clamp_magnitude(const Cpu& on, double limit, const View& x);

}  // namespace ingot::kernels
