#pragma once

#include "ingot/tensor/tensor.h"

namespace ingot {

enum class Gate : uint8_t { silu, gelu, gelu_tanh, sigmoid, relu };

// y = act(gate) · up, one pass forward and one backward. Shapes equal. Shazeer 2020,
// arXiv:2002.05202. swiglu is Gate::silu, geglu Gate::gelu or gelu_tanh.
Tensor gated(const Tensor& gate, const Tensor& up, Gate activation);

}  // namespace ingot
