#pragma once

#include "ingot/tensor/tensor.h"

namespace ingot {

// x itself if the [H, C] of every token of x: [B, T, H, C] is contiguous (tokens may be strided: a
// slice of a fused projection), a dense copy of it otherwise.
Tensor token_rows(const Tensor& x);

}  // namespace ingot
