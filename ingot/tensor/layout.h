#pragma once

#include "ingot/tensor/tensor.h"

namespace ingot {

// Views of the same elements under another shape: no copy, no history. The differentiable functions
// (reshape, transpose, slice, …) are in ops/shape.h and call these.

// Throws Error(shape) if the element counts differ, or if the strides do not allow it without a
// copy.
Tensor reshaped(const Tensor& x, const Shape& shape);
bool can_reshape(const Tensor& x, const Shape& shape);
Tensor transposed(const Tensor& x, int64_t dim0, int64_t dim1);
Tensor permuted(const Tensor& x, std::span<const int64_t> order);
// Elements [begin, end) of dimension `dim`, every `step`-th.
Tensor sliced(const Tensor& x, int64_t dim, int64_t begin, int64_t end, int64_t step = 1);
// Sizes of 1 repeated without a copy (stride 0).
Tensor expanded(const Tensor& x, const Shape& shape);

}  // namespace ingot
