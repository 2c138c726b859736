#pragma once

#include "ingot/base/view.h"
#include "ingot/device/on_device.h"

namespace ingot::kernels {

// Reductions of the middle of three dense dimensions: x is [A, N, B], results are [A, B]. Sums are
// kept in f32 (f64 for f64), in an order that neither the number of threads nor the run changes.

// y = scale · Σ_n x_n; x floating-point, y of its dtype. The sum is scaled before it is rounded.
void sum(const Cpu& on, const ConstView& x, double scale, const View& y);
// y = Σ_n x_n of integers or bools; y is i64.
void sum_integers(const Cpu& on, const ConstView& x, const View& y);

// y = Σ_n (x_n − mean)² · scale, in two passes.
void squared_deviation(const Cpu& on, const ConstView& x, double scale, const View& y);

// y = log Σ_n exp(x_n), without overflow; −∞ if all x_n are.
void logsumexp(const Cpu& on, const ConstView& x, const View& y);

// y_n = Σ_{m ≤ n} x_m, summed in f64; y is [A, N, B] of x's dtype, floating-point or i64.
void cumsum(const Cpu& on, const ConstView& x, const View& y);

// The largest or smallest x_n of any dtype, N ≥ 1, and where (i64): the first of equals. NaN counts
// as beyond all numbers: the first one wins.
enum class Extreme : bool { least, most };
void extreme(const Cpu& on, Extreme which, const ConstView& x, const View& indices);

}  // namespace ingot::kernels
