#pragma once

#include "ingot/base/view.h"
#include "ingot/device/on_device.h"

namespace ingot::kernels {

// One of the two kernel families that interpret strides (the other is copy). All operands have y's
// shape; where one repeats, its stride is 0. Half types are computed in f32 and rounded once.

// Functions of two numbers, of one dtype: floating-point, or i32 and i64 (which wrap around, and
// have no div).
enum class Binary : uint8_t {
  add,
  sub,
  mul,
  div,
  maximum,  // NaN if either is
  minimum,
  share_of_maximum,  // the part of maximum's gradient that a takes: 1 if a > b, ½ if equal, else 0
  share_of_minimum,
};
// y[i] = f(a[i], b[i])
void binary(const Cpu& on, Binary f, const ConstView& a, const ConstView& b, const View& y);
void binary(const Cpu& on, Binary f, const ConstView& a, double b, const View& y);
void binary(const Cpu& on, Binary f, double a, const ConstView& b, const View& y);

// Comparisons of two numbers of any one dtype; false with NaN, but for not_equal.
enum class Comparison : uint8_t { equal, not_equal, less, less_equal };
// y[i] = a[i] ? b[i]; y is bool
void compare(const Cpu& on, Comparison f, const ConstView& a, const ConstView& b, const View& y);

// y[i] = condition[i] ? a[i] : b[i]; condition is bool; a, b, y of any one dtype.
void where(const Cpu& on, const ConstView& condition, const ConstView& a, const ConstView& b,
           const View& y);

// Functions of one floating-point number. kernels/cpu/unary-inl.h has each with its derivative.
enum class Unary : uint8_t {
  exp,
  log,
  sqrt,
  rsqrt,
  square,
  pow,  // x^first
  abs,
  clamp,  // to [first, second]
  sin,
  cos,
  relu,
  relu_squared,
  sigmoid,
  log_sigmoid,
  softplus,
  tanh,
  silu,
  gelu,
  gelu_slope,  // Φ(x) + x φ(x), the derivative of gelu
  gelu_tanh,
};
inline constexpr int64_t unary_count = 20;

// A function with its constants.
struct UnaryCall {
  Unary f;
  double first = 0;
  double second = 0;
};

// What f' is computed from: the argument or the result, whichever is enough.
enum class Keeps : bool { argument, result };
Keeps keeps(Unary f);

// y[i] = f(x[i])
void unary(const Cpu& on, const UnaryCall& call, const ConstView& x, const View& y);
// dx[i] = dy[i] · f'(x[i]), where kept is x or y = f(x) as keeps(f) says
void unary_backward(const Cpu& on, const UnaryCall& call, const ConstView& dy,
                    const ConstView& kept, const View& dx);

}  // namespace ingot::kernels
