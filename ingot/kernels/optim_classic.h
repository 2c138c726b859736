#pragma once

#include "ingot/base/view.h"
#include "ingot/device/on_device.h"

namespace ingot::kernels {

// Updates of the years around Adam, in one pass over memory; operands as in kernels/optim.h.

struct AdamaxNumbers {
  double scale = 1;
  double l2 = 0;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  double rate = 0;
};
// d = scale·g + l2·p;  m ← β1·m + (1−β1)·d;  u ← max(β2·u, |d| + eps);  p ← p − rate·m / u
void adamax(const Cpu& on, const AdamaxNumbers& numbers, const ConstView& g, const View& p,
            const View& m, const View& u, const View& rounded);

struct NadamNumbers {
  double scale = 1;
  double l2 = 0;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double from_gradient = 0;
  double from_moment = 0;
  double root_scale = 1;  // multiplies √v
  double eps = 1e-8;
};
// d = scale·g + l2·p;  m and v as Adam's;
// p ← p − (from_gradient·d + from_moment·m) / (root_scale·√v + eps)
void nadam(const Cpu& on, const NadamNumbers& numbers, const ConstView& g, const View& p,
           const View& m, const View& v, const View& rounded);

struct AdadeltaNumbers {
  double scale = 1;
  double l2 = 0;
  double rho = 0.9;
  double eps = 1e-6;
  double rate = 0;
};
// d = scale·g + l2·p;  v ← ρ·v + (1−ρ)·d²;  r = √(a + eps) / √(v + eps)·d;  a ← ρ·a + (1−ρ)·r²;
// p ← p − rate·r
void adadelta(const Cpu& on, const AdadeltaNumbers& numbers, const ConstView& g, const View& p,
              const View& v, const View& a, const View& rounded);

struct RpropNumbers {
  double scale = 1;
  double shrink = 0.5;
  double grow = 1.2;
  double least = 0;  // bounds of s
  double most = 0;
  double rate = 0;
};
// d = scale·g;  s ← clamp(s·(grow where d·b > 0, shrink where d·b < 0, else 1), least, most);
// d ← 0 where d·b < 0;  p ← p − rate·s·sign(d);  b ← d
void rprop(const Cpu& on, const RpropNumbers& numbers, const ConstView& g, const View& p,
           const View& b, const View& s, const View& rounded);

}  // namespace ingot::kernels
