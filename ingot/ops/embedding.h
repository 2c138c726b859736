#pragma once

#include "ingot/tensor/tensor.h"

namespace ingot {

// y[…, :] = weight[ids[…], :].   weight: [V, D]   ids: [...] i64 or i32   y: [..., D]
// Backward adds rows in a fixed order (repeated ids accumulate), in accumulator(dtype).
// Error(argument) naming an id outside [0, V) and its position.
Tensor embedding(const Tensor& weight, const Tensor& ids);

}  // namespace ingot
