#pragma once

#include <string_view>
#include <vector>

#include "ingot/tensor/tensor.h"

namespace ingot::nn {

// The nonlinearity of a feed-forward layer. The last five are gated: act(x Gᵀ) · (x Uᵀ).
enum class Activation : uint8_t {
  gelu,
  gelu_tanh,
  relu,
  relu_squared,
  silu,
  swiglu,
  geglu,
  geglu_tanh,
  reglu,
  glu,
};

std::vector<std::string> activation_names();
std::string_view name(Activation activation);
Activation activation_named(std::string_view name);  // Error(config) listing the names
bool is_gated(Activation activation);

Tensor activate(const Tensor& x, Activation activation);                       // of a plain one
Tensor activate(const Tensor& gate, const Tensor& up, Activation activation);  // of a gated one

}  // namespace ingot::nn
