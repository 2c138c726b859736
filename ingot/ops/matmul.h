#pragma once

#include "ingot/tensor/tensor.h"

namespace ingot {

// y = a b.   a: [..., M, K]   b: [..., K, N]   y: [..., M, N]; leading dimensions broadcast.
// Transposed operands are read in place. f16/bf16 products are summed in f32 and rounded once.
Tensor matmul(const Tensor& a, const Tensor& b);

}  // namespace ingot
