#pragma once

#include <string>

#include "ingot/base/range.h"
#include "ingot/nn/module.h"

namespace ingot::nn {

// How matrices start; gains start at 1 and biases at 0 under every scheme. With fan_in = In and
// fan_out = Out of a weight [Out, In]:
//   normal          N(0, deviation²)
//   gpt2            the same, but deviation/√(2L) for the maps that write into the residual stream
//                   (Radford et al. 2019); L blocks
//   xavier          uniform in ±√(6 / (fan_in + fan_out)) (Glorot & Bengio 2010)
//   xavier_normal   N(0, 2 / (fan_in + fan_out))
//   kaiming         N(0, 2 / fan_in) (He et al. 2015, arXiv:1502.01852)
// Embeddings start as N(0, deviation²) always.
struct InitConfig {
  std::string scheme = "gpt2";
  double deviation = 0.02;

  template <class V>
  void describe(V& v) {
    v("scheme", scheme, one_of({"gpt2", "normal", "xavier", "xavier_normal", "kaiming"}),
      "distribution the weights start from");
    v("deviation", deviation, at_least(0), "standard deviation of gpt2, normal and embeddings");
  }
};

// The start of every parameter in f32, by name. A value depends on the seed, the parameter's name
// and its shape, and on nothing else: not on order, device or the other parameters.
TensorDict initial_values(const Module& module, const InitConfig& config, uint64_t seed);

// Writes the same values into the parameters, one parameter at a time, rounded to their types.
void initialise(Module& module, const InitConfig& config, uint64_t seed);

}  // namespace ingot::nn
