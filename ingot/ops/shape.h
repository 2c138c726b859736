#pragma once

#include <span>

#include "ingot/tensor/tensor.h"

namespace ingot {

// Differentiable changes of layout. All but concat, pad, flip, roll and contiguous are views.

Tensor reshape(const Tensor& x,
               const Shape& shape);  // one size may be −1; copies if strides demand it
Tensor transpose(const Tensor& x, int64_t dim0 = -2, int64_t dim1 = -1);
Tensor permute(const Tensor& x, std::initializer_list<int64_t> order);
Tensor expand(const Tensor& x, const Shape& shape);  // backward: sum_to(x.shape())
Tensor squeeze(const Tensor& x, int64_t dim);
Tensor unsqueeze(const Tensor& x, int64_t dim);
Tensor contiguous(const Tensor& x);  // x itself if dense
// Elements [begin, end) of `dim`; negative positions count from the end.
Tensor slice(const Tensor& x, int64_t dim, int64_t begin, int64_t end, int64_t step = 1);
// Views of consecutive parts of `dim` with the given sizes (they must sum to its size); one
// backward joins them.
TensorList split(const Tensor& x, std::span<const int64_t> sizes, int64_t dim = -1);
TensorList split(const Tensor& x, std::initializer_list<int64_t> sizes, int64_t dim = -1);
Tensor concat(const TensorList& xs, int64_t dim);
Tensor stack(const TensorList& xs, int64_t dim);
// `before` and `after` new elements of `value` at the ends of `dim`.
Tensor pad(const Tensor& x, int64_t dim, int64_t before, int64_t after, double value = 0);
Tensor flip(const Tensor& x, int64_t dim);
Tensor roll(const Tensor& x, int64_t shift, int64_t dim);
Tensor cast(const Tensor& x, DType dtype);
// Sums x over the dimensions in which it is larger than `shape`: the gradient of broadcasting.
Tensor sum_to(const Tensor& x, const Shape& shape);

}  // namespace ingot
