// Exponentials, powers and the like, of ops/elementwise.h. Each gives its derivative in operations;
// the fused one stands in kernels/cpu/unary-inl.h.

#include "ingot/ops/elementwise.h"
#include "ingot/ops/shape.h"
#include "ingot/ops/unary.h"
#include "ingot/tensor/factories.h"

namespace ingot {

using kernels::Unary;

Tensor exp(const Tensor& x) {
  return unary("exp", {Unary::exp}, x, [](const Tensor& y) { return y; });
}

Tensor log(const Tensor& x) {
  return unary("log", {Unary::log}, x, [](const Tensor& at) { return 1.0 / at; });
}

Tensor sqrt(const Tensor& x) {
  return unary("sqrt", {Unary::sqrt}, x, [](const Tensor& y) { return 0.5 / y; });
}

Tensor rsqrt(const Tensor& x) {
  return unary("rsqrt", {Unary::rsqrt}, x, [](const Tensor& y) { return square(y) * y * -0.5; });
}

Tensor square(const Tensor& x) {
  return unary("square", {Unary::square}, x, [](const Tensor& at) { return at * 2.0; });
}

Tensor pow(const Tensor& x, double exponent) {
  return unary("pow", {Unary::pow, exponent}, x, [exponent](const Tensor& at) {
    return exponent == 0 ? at * 0.0 : pow(at, exponent - 1) * exponent;
  });
}

Tensor abs(const Tensor& x) {
  return unary("abs", {Unary::abs}, x, [](const Tensor& at) {
    const Tensor zero = scalar(0, at.dtype(), at.device());
    return cast(less(zero, at), at.dtype()) - cast(less(at, zero), at.dtype());
  });
}

Tensor clamp(const Tensor& x, double low, double high) {
  check(low <= high, ErrorKind::argument, "clamp: low exceeds high: low is ", low, ", high is ",
        high);
  return unary("clamp", {Unary::clamp, low, high}, x, [low, high](const Tensor& at) {
    const Tensor bottom = scalar(low, at.dtype(), at.device());
    const Tensor top = scalar(high, at.dtype(), at.device());
    return cast(less_equal(bottom, at), at.dtype()) * cast(less_equal(at, top), at.dtype());
  });
}

Tensor sin(const Tensor& x) {
  return unary("sin", {Unary::sin}, x, [](const Tensor& at) { return cos(at); });
}

Tensor cos(const Tensor& x) {
  return unary("cos", {Unary::cos}, x, [](const Tensor& at) { return -sin(at); });
}

}  // namespace ingot
