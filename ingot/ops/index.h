#pragma once

#include <utility>

#include "ingot/tensor/tensor.h"

namespace ingot {

// Indices are i64 (or i32) tensors; one outside its range is an Error(argument) that names it.

// y[…, i, …] = x[…, index[…, i, …], …] along `dim`; index has x's rank.
Tensor gather(const Tensor& x, int64_t dim, const Tensor& index);
// y = x with source[…, i, …] added at index[…, i, …] along `dim`; deterministic for repeated
// indices.
Tensor scatter_add(const Tensor& x, int64_t dim, const Tensor& index, const Tensor& source);
// The slices of `dim` named by a 1-D index, in its order.
Tensor index_select(const Tensor& x, int64_t dim, const Tensor& index);
// [..., classes] of `dtype`: 1 at index, 0 elsewhere.
Tensor one_hot(const Tensor& index, int64_t classes, DType dtype);

enum class Order : bool { ascending, descending };
struct Sorted {
  Tensor values;
  Tensor indices;  // i64
};
// Stable sort of the last dimension; NaN last. No gradient.
Sorted sort(const Tensor& x, Order order = Order::ascending);
// The k largest of the last dimension, largest first; the first of equals wins. No gradient.
Sorted topk(const Tensor& x, int64_t k);

}  // namespace ingot
