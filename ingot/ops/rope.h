#pragma once

#include "ingot/kernels/rope.h"
#include "ingot/tensor/tensor.h"

namespace ingot {

// Rotary position embedding: pair p of the first n features of each head turns by the angle of its
// position,
//   (u, v) → (u cos − v sin, u sin + v cos);
// the other C − n features pass unchanged (partial rotation). RopeLayout says which features pair:
// half_split i with i + n/2, interleaved 2i with 2i + 1.
// x: [B, T, H, C] (heads and features contiguous; rows may be strided)   cos, sin: [T, n/2] or [B,
// T, n/2], f32 (f64 for f64 x). Half types are rotated in f32. Linear in x, and differentiable any
// number of times: the backward turns by the negative angle. Su et al. 2021, arXiv:2104.09864.
Tensor rope(const Tensor& x, const Tensor& cos, const Tensor& sin, RopeLayout layout);

struct RopeTables {
  Tensor cos, sin;  // [T, n/2]
};
// Angles θ_{t,p} = position_t · base^(−2p/n), computed in f64. positions: [T] i64, or [B, T].
RopeTables rope_tables(const Tensor& positions, int64_t rotated, double base,
                       DType dtype = DType::f32);

}  // namespace ingot
