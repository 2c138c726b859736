// The activations of ops/elementwise.h. Each gives its derivative in operations; the fused one
// stands in kernels/cpu/unary-inl.h.

#include <cmath>
#include <numbers>

#include "ingot/ops/elementwise.h"
#include "ingot/ops/unary.h"

namespace ingot {

using kernels::Unary;

namespace {

// φ(x) = e^(−x²/2) / √2π.
Tensor normal_density(const Tensor& x) {
  return exp(square(x) * -0.5) * (1 / std::sqrt(2 * std::numbers::pi));
}

}  // namespace

Tensor relu_squared(const Tensor& x) {
  return unary("relu_squared", {Unary::relu_squared}, x,
               [](const Tensor& at) { return relu(at) * 2.0; });
}

Tensor sigmoid(const Tensor& x) {
  return unary("sigmoid", {Unary::sigmoid}, x, [](const Tensor& y) { return y * (1.0 - y); });
}

Tensor log_sigmoid(const Tensor& x) {
  return unary("log_sigmoid", {Unary::log_sigmoid}, x,
               [](const Tensor& at) { return sigmoid(-at); });
}

Tensor softplus(const Tensor& x) {
  return unary("softplus", {Unary::softplus}, x, [](const Tensor& at) { return sigmoid(at); });
}

Tensor tanh(const Tensor& x) {
  return unary("tanh", {Unary::tanh}, x, [](const Tensor& y) { return 1.0 - square(y); });
}

Tensor silu(const Tensor& x) {
  return unary("silu", {Unary::silu}, x, [](const Tensor& at) {
    const Tensor s = sigmoid(at);
    return s * (1.0 + at * (1.0 - s));
  });
}

Tensor gelu(const Tensor& x) {
  return unary("gelu", {Unary::gelu}, x, [](const Tensor& at) {  // Φ(x) + x φ(x), an entry itself
    return unary("gelu slope", {Unary::gelu_slope}, at,
                 [](const Tensor& z) { return normal_density(z) * (2.0 - square(z)); });
  });
}

Tensor gelu_tanh(const Tensor& x) {
  return unary("gelu_tanh", {Unary::gelu_tanh}, x, [](const Tensor& at) {
    constexpr double scale = 1.5957691216057307118;  // 2 √(2/π)
    const Tensor squared = square(at);
    const Tensor s = sigmoid(at * scale * (1.0 + squared * 0.044715));
    return s + at * s * (1.0 - s) * ((1.0 + squared * (3 * 0.044715)) * scale);
  });
}

}  // namespace ingot
