#pragma once

#include "ingot/tensor/tensor.h"

namespace ingot::quant {

// BitNet b1.58: linear maps of weights −1, 0 and 1 under one scale and activations of 8 bits under
// one scale a row. Ma et al. 2024, "The era of 1-bit LLMs", arXiv:2402.17764, equations 1 to 3,
// with the limits and the gradients of its "Training tips, code and FAQ".
//
//   γ = max(mean|W|, 1e-5);      Ŵ = γ · clip(round(W / γ), −1, 1)
//   α = max(max|x|, 1e-5) / 127; x̂ = α · clip(round(x / α), −128, 127), α of each row
//   y = x̂ Ŵᵀ;   dx = dy Ŵ, dW = dyᵀ x̂
struct Rounded {
  Tensor codes;   // whole numbers in the type of what was rounded
  Tensor scale;   // [] of weights, [..., 1] of activations
  Tensor values;  // codes · scale, with the gradient of what was rounded
};
Rounded ternary_weight(const Tensor& weight);
Rounded int8_activations(const Tensor& x);

// x: [..., In]  weight: [Out, In]  →  [..., Out]
Tensor bitnet_linear(const Tensor& x, const Tensor& weight);

}  // namespace ingot::quant
