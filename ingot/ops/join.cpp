// Tensors cut into parts and joined from parts: split, concat, stack of ops/shape.h.

#include "ingot/autograd/record.h"
#include "ingot/ops/shape.h"
#include "ingot/tensor/copy.h"
#include "ingot/tensor/factories.h"
#include "ingot/tensor/layout.h"

namespace ingot {
namespace {

// The gradients of all parts of dimension `dim`, joined; zeros where none arrived.
Tensor joined(const TensorList& dys, const Shape& whole, const std::vector<int64_t>& sizes,
              int64_t dim) {
  const Tensor* any = nullptr;
  for (const Tensor& dy : dys) {
    any = dy.defined() ? &dy : any;
  }
  TensorList parts;
  for (size_t i = 0; i < dys.size(); ++i) {
    Shape shape = whole;
    shape[dim] = sizes[i];
    parts.push_back(dys[i].defined() ? dys[i] : zeros(shape, any->dtype(), any->device()));
  }
  return concat(parts, dim);
}

void check_alike(const Tensor& first, const Tensor& x, size_t which, int64_t dim) {
  check(x.dtype() == first.dtype(), ErrorKind::dtype, "concat: dtypes differ: part 0 is ",
        first.dtype(), ", part ", which, " is ", x.dtype(), "; cast one of them");
  check(x.device() == first.device(), ErrorKind::device, "concat: devices differ: part 0 is on ",
        first.device(), ", part ", which, " on ", x.device());
  Shape expected = first.shape();
  if (x.rank() == expected.rank()) {
    expected[dim] = x.shape()[dim];
  }
  check(x.shape() == expected, ErrorKind::shape, "concat: shapes differ outside dimension ", dim,
        ": part 0 is ", first.shape(), ", part ", which, " is ", x.shape());
}

}  // namespace

TensorList split(const Tensor& x, std::span<const int64_t> sizes, int64_t dim) {
  const int64_t d = x.shape().index(dim);
  const std::vector<int64_t> parts(sizes.begin(), sizes.end());
  TensorList ys;
  int64_t begin = 0;
  int64_t total = 0;
  for (const int64_t size : parts) {
    check(size >= 0, ErrorKind::shape, "split: a size is negative: ", size);
    total += size;
  }
  check(total == x.shape()[d], ErrorKind::shape, "split: the sizes sum to ", total, ", dimension ",
        dim, " of ", x.shape(), " has ", x.shape()[d]);
  for (const int64_t size : parts) {
    ys.push_back(sliced(x, d, begin, begin + size));
    begin += size;
  }
  return record("split", std::move(ys),
                jointly({x}, [parts, d, shape = x.shape()](const TensorList& dys) {
                  return TensorList{joined(dys, shape, parts, d)};
                }));
}

TensorList split(const Tensor& x, std::initializer_list<int64_t> sizes, int64_t dim) {
  return split(x, std::span<const int64_t>(sizes.begin(), sizes.size()), dim);
}

Tensor concat(const TensorList& xs, int64_t dim) {
  check(!xs.empty(), ErrorKind::argument, "concat: takes at least one tensor");
  const int64_t d = xs[0].shape().index(dim);
  Shape shape = xs[0].shape();
  std::vector<int64_t> sizes;
  shape[d] = 0;
  for (size_t i = 0; i < xs.size(); ++i) {
    check_alike(xs[0], xs[i], i, d);
    sizes.push_back(xs[i].shape()[d]);
    shape[d] += sizes.back();
  }
  Tensor y = empty(shape, xs[0].dtype(), xs[0].device());
  int64_t begin = 0;
  for (size_t i = 0; i < xs.size(); ++i) {
    Tensor part = sliced(y, d, begin, begin + sizes[i]);
    copy_into(part, xs[i]);
    begin += sizes[i];
  }
  return record("concat", y,
                jointly(xs, [sizes, d](const TensorList& dys) { return split(dys[0], sizes, d); }));
}

Tensor stack(const TensorList& xs, int64_t dim) {
  TensorList rows;
  for (const Tensor& x : xs) {
    rows.push_back(unsqueeze(x, dim));
  }
  return concat(rows, dim);
}

}  // namespace ingot
