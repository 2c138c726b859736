#pragma once

#include "ingot/tensor/tensor.h"

namespace ingot {

// Elementwise arithmetic with NumPy's broadcasting. Operands have one dtype; a double operand takes
// the other's.
Tensor add(const Tensor& a, const Tensor& b);
Tensor sub(const Tensor& a, const Tensor& b);
Tensor mul(const Tensor& a, const Tensor& b);
Tensor div(const Tensor& a, const Tensor& b);
Tensor maximum(const Tensor& a, const Tensor& b);  // ties send half of the gradient to each
Tensor minimum(const Tensor& a, const Tensor& b);
Tensor operator+(const Tensor& a, const Tensor& b);
Tensor operator-(const Tensor& a, const Tensor& b);
Tensor operator*(const Tensor& a, const Tensor& b);
Tensor operator/(const Tensor& a, const Tensor& b);
Tensor operator+(const Tensor& a, double b);
Tensor operator-(const Tensor& a, double b);
Tensor operator*(const Tensor& a, double b);
Tensor operator/(const Tensor& a, double b);
Tensor operator+(double a, const Tensor& b);
Tensor operator-(double a, const Tensor& b);
Tensor operator*(double a, const Tensor& b);
Tensor operator/(double a, const Tensor& b);
Tensor operator-(const Tensor& x);

// Comparisons → bool tensors, no gradient.
Tensor equal(const Tensor& a, const Tensor& b);
Tensor not_equal(const Tensor& a, const Tensor& b);
Tensor less(const Tensor& a, const Tensor& b);
Tensor less_equal(const Tensor& a, const Tensor& b);
Tensor greater(const Tensor& a, const Tensor& b);
Tensor greater_equal(const Tensor& a, const Tensor& b);
// condition ? a : b, with broadcasting.
Tensor where(const Tensor& condition, const Tensor& a, const Tensor& b);

Tensor exp(const Tensor& x);
Tensor log(const Tensor& x);
Tensor sqrt(const Tensor& x);
Tensor rsqrt(const Tensor& x);
Tensor square(const Tensor& x);
Tensor pow(const Tensor& x, double exponent);
Tensor abs(const Tensor& x);  // gradient 0 at 0
Tensor clamp(const Tensor& x, double low, double high);
Tensor sin(const Tensor& x);
Tensor cos(const Tensor& x);

// Activations (twice differentiable where their formulas are in ops: sigmoid, tanh, relu,
// relu_squared, silu, log_sigmoid, softplus; gelu kinds first order only unless cheap).
Tensor relu(const Tensor& x);
Tensor relu_squared(const Tensor& x);
Tensor sigmoid(const Tensor& x);
Tensor log_sigmoid(const Tensor& x);  // log(1 / (1 + e^−x)), without overflow
Tensor softplus(const Tensor& x);     // log(1 + e^x), without overflow
Tensor tanh(const Tensor& x);
Tensor silu(const Tensor& x);       // x σ(x)
Tensor gelu(const Tensor& x);       // x Φ(x), exact: with erf
Tensor gelu_tanh(const Tensor& x);  // 0.5 x (1 + tanh(√(2/π) (x + 0.044715 x³)))

}  // namespace ingot
