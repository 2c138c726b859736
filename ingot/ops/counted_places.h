#pragma once

#include "ingot/tensor/tensor.h"

namespace ingot {

// The places among all B·T of the labels that count, those that are not `ignored`: [M] i64; all
// places on the meta device.   labels: [B, T] i64
Tensor counted_places(const Tensor& labels, int64_t ignored = -100);

}  // namespace ingot
