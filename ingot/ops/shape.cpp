#include "ingot/ops/shape.h"

#include <algorithm>

#include "ingot/autograd/record.h"
#include "ingot/tensor/copy.h"
#include "ingot/tensor/factories.h"
#include "ingot/tensor/layout.h"

namespace ingot {
namespace {

// `shape` with its −1, if any, replaced by what x's elements leave for it.
Shape resolved(const Tensor& x, Shape shape) {
  int64_t known = 1;
  int64_t open = -1;
  for (int64_t i = 0; i < shape.rank(); ++i) {
    if (shape[i] == -1) {
      check(open < 0, ErrorKind::shape, "reshape: more than one size is −1: ", shape);
      open = i;
    } else {
      check(shape[i] >= 0, ErrorKind::shape, "reshape: a size is negative: ", shape);
      known *= shape[i];
    }
  }
  if (open >= 0) {
    check(known > 0 && x.elements() % known == 0, ErrorKind::shape,
          "reshape: no size fits the −1: x is ", x.shape(), " (", x.elements(),
          " elements), asked for ", shape);
    shape[open] = x.elements() / known;
  }
  return shape;
}

// A position in a dimension of `size`, counted from the end if negative.
int64_t position(int64_t at, int64_t size) { return at < 0 ? at + size : at; }

// Zeros of `shape` with dy at [begin, end) of `dim`, every step-th: the gradient of slice.
Tensor unslice(const Tensor& dy, const Shape& shape, int64_t dim, int64_t begin, int64_t end,
               int64_t step) {
  Tensor dx = zeros(shape, dy.dtype(), dy.device());
  Tensor part = sliced(dx, dim, begin, end, step);
  copy_into(part, dy);
  return record("slice backward", dx,
                wrt(dy, [=](const Tensor& ddx) { return slice(ddx, dim, begin, end, step); }));
}

}  // namespace

Tensor reshape(const Tensor& x, const Shape& asked) {
  const Shape shape = resolved(x, asked);
  if (shape == x.shape()) {
    return x;
  }
  const bool view = x.elements() != shape.elements() || can_reshape(x, shape);
  const Tensor y = reshaped(view ? x : copy_of(x), shape);
  return record("reshape", y,
                wrt(x, [before = x.shape()](const Tensor& dy) { return reshape(dy, before); }));
}

Tensor transpose(const Tensor& x, int64_t dim0, int64_t dim1) {
  return record("transpose", transposed(x, dim0, dim1),
                wrt(x, [=](const Tensor& dy) { return transpose(dy, dim0, dim1); }));
}

namespace {

Tensor permute_by(const Tensor& x, const Shape& order) {
  const Tensor y = permuted(x, {order.begin(), order.end()});
  return record("permute", y, wrt(x, [order](const Tensor& dy) {
                  Shape inverse = Shape::filled(order.rank(), 0);
                  for (int64_t i = 0; i < order.rank(); ++i) {
                    inverse[dy.shape().index(order[i])] = i;
                  }
                  return permute_by(dy, inverse);
                }));
}

}  // namespace

Tensor permute(const Tensor& x, std::initializer_list<int64_t> order) {
  return permute_by(x, Shape(order));
}

Tensor expand(const Tensor& x, const Shape& shape) {
  if (shape == x.shape()) {
    return x;
  }
  return record("expand", expanded(x, shape),
                wrt(x, [before = x.shape()](const Tensor& dy) { return sum_to(dy, before); }));
}

Tensor squeeze(const Tensor& x, int64_t dim) {
  const int64_t d = x.shape().index(dim);
  check(x.shape()[d] == 1, ErrorKind::shape, "squeeze: dimension ", dim, " of ", x.shape(),
        " has size ", x.shape()[d], ", not 1");
  Shape shape = x.shape();
  Strides strides = x.strides();
  shape.erase(d);
  strides.erase(d);
  return record("squeeze", x.aliased(shape, strides, x.offset()),
                wrt(x, [d](const Tensor& dy) { return unsqueeze(dy, d); }));
}

Tensor unsqueeze(const Tensor& x, int64_t dim) {
  const int64_t rank = x.rank();
  check(dim >= -rank - 1 && dim <= rank, ErrorKind::shape, "unsqueeze: position ", dim,
        " is outside shape ", x.shape());
  const int64_t d = dim < 0 ? dim + rank + 1 : dim;
  Shape shape = x.shape();
  Strides strides = x.strides();
  strides.insert(d, d < rank ? strides[d] * shape[d] : 1);
  shape.insert(d, 1);
  return record("unsqueeze", x.aliased(shape, strides, x.offset()),
                wrt(x, [d](const Tensor& dy) { return squeeze(dy, d); }));
}

Tensor contiguous(const Tensor& x) {
  if (x.dense()) {
    return x;
  }
  return record("contiguous", copy_of(x), wrt(x, [](const Tensor& dy) { return dy; }));
}

Tensor slice(const Tensor& x, int64_t dim, int64_t begin, int64_t end, int64_t step) {
  const int64_t size = x.size(dim);
  const int64_t first = position(begin, size);
  const int64_t last = position(end, size);
  const Tensor y = sliced(x, dim, first, last, step);
  return record("slice", y, wrt(x, [=, shape = x.shape()](const Tensor& dy) {
                  return unslice(dy, shape, dim, first, last, step);
                }));
}

Tensor pad(const Tensor& x, int64_t dim, int64_t before, int64_t after, double value) {
  check(before >= 0 && after >= 0, ErrorKind::argument,
        "pad: counts must not be negative: before is ", before, ", after is ", after);
  const int64_t d = x.shape().index(dim);
  const int64_t end = before + x.shape()[d];
  Shape shape = x.shape();
  shape[d] = end + after;
  Tensor y = full(shape, value, x.dtype(), x.device());
  Tensor middle = sliced(y, d, before, end);
  copy_into(middle, x);
  return record("pad", y, wrt(x, [=](const Tensor& dy) { return slice(dy, d, before, end); }));
}

Tensor flip(const Tensor& x, int64_t dim) {
  const int64_t d = x.shape().index(dim);
  Strides strides = x.strides();
  const int64_t last = std::max<int64_t>(x.shape()[d] - 1, 0);
  const int64_t offset = x.offset() + last * strides[d];
  strides[d] = -strides[d];
  const Tensor y = copy_of(x.aliased(x.shape(), strides, offset));
  return record("flip", y, wrt(x, [d](const Tensor& dy) { return flip(dy, d); }));
}

Tensor roll(const Tensor& x, int64_t shift, int64_t dim) {
  const int64_t size = x.size(dim);
  const int64_t moved_by = size == 0 ? 0 : (shift % size + size) % size;
  if (moved_by == 0) {
    return x;
  }
  return concat({slice(x, dim, size - moved_by, size), slice(x, dim, 0, size - moved_by)}, dim);
}

Tensor cast(const Tensor& x, DType dtype) {
  if (x.dtype() == dtype) {
    return x;
  }
  const Tensor y = converted(x, dtype);
  if (!is_float(dtype) || !is_float(x.dtype())) {
    return y;
  }
  return record("cast", y,
                wrt(x, [before = x.dtype()](const Tensor& dy) { return cast(dy, before); }));
}

}  // namespace ingot
