#pragma once

#include "ingot/tensor/tensor.h"

namespace ingot::nn {

// How a model knows the order of its tokens.
enum class PositionKind : uint8_t {
  none,
  sinusoidal,  // fixed waves added to the embeddings
  learned,     // a trained row per position added to the embeddings
  rope,        // queries and keys turned by their position (rotary.h)
  alibi,       // scores lowered in proportion to distance
};

// y_{t,2i} = sin(t / 10000^(2i/D)), y_{t,2i+1} = cos of the same.   positions: [...] i64   y: [...,
// D], D even. Computed in f64. Vaswani et al. 2017, arXiv:1706.03762, section 3.5.
Tensor sinusoidal_table(const Tensor& positions, int64_t width, DType dtype);

// The slope of each head, [H] f32: 2^(−8h/H) for h = 1 … H where H is a power of two; otherwise
// those of the largest power of two P below H, then every other one of 2P heads. Press et al. 2022,
// arXiv:2108.12409, and the authors' program.
Tensor alibi_slopes(int64_t heads, Device device);

}  // namespace ingot::nn
