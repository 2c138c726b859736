#pragma once

#include "ingot/tensor/tensor.h"

namespace ingot {

// Keys or values in 8 bits with a scale for every token and head, symmetric round to nearest:
// x[b, t, h, c] ≈ scales[b, t, h, 0] · codes[b, t, h, c], scale = max_c |x| / 127. Takes
// 1 + 4 / C bytes an element; largest error: 1/254 of the largest magnitude of the token's head.
struct Int8Heads {
  Tensor codes;   // [B, T, K, C] i8
  Tensor scales;  // [B, T, K, 1] f32; NaN where an element is not finite
};

// x: [B, T, K, C] f32, bf16 or f16. Without history. Throws Error(dtype) for other types.
Int8Heads int8_heads(const Tensor& x);

// What the codes stand for.
Tensor dense_heads(const Int8Heads& heads, DType dtype);

}  // namespace ingot
