#include "ingot/ops/index.h"

#include "ingot/autograd/record.h"
#include "ingot/device/on_device.h"
#include "ingot/kernels/index.h"
#include "ingot/ops/shape.h"
#include "ingot/tensor/copy.h"
#include "ingot/tensor/factories.h"
#include "ingot/tensor/layout.h"

namespace ingot {
namespace {

// A dense, history-free x around dimension d: [what is before, d, what is after].
Tensor grouped(const Tensor& x, int64_t d) {
  Shape three = {1, x.shape()[d], 1};
  for (int64_t i = 0; i < x.rank(); ++i) {
    three[i < d ? 0 : 2] *= i == d ? 1 : x.shape()[i];
  }
  return reshaped(detach(dense(x)), three);
}

void check_index_type(const char* op, const Tensor& index) {
  check(index.dtype() == DType::i64 || index.dtype() == DType::i32, ErrorKind::dtype, op,
        ": the index must be i64 or i32: got ", index.dtype());
}

// The coordinates of element `at` in row-major order.
Shape coordinates(const Shape& shape, int64_t at) {
  Shape out = shape;
  for (int64_t i = shape.rank() - 1; i >= 0; --i) {
    out[i] = at % shape[i];
    at /= shape[i];
  }
  return out;
}

// Throws Error(argument) naming the first index outside [0, size) and where it stands. Reads
// values, so it does nothing on the meta device.
void check_range(const char* op, const Tensor& index, int64_t size) {
  const Tensor flat = dense(index);
  on_device(index.device(), [&](const auto& on) {
    const int64_t at = kernels::first_outside(on, flat.view(), size);
    if (at >= 0) {
      const Shape where = coordinates(index.shape(), at);
      const double value = flat.aliased({}, {}, flat.offset() + at).item();
      throw Error(ErrorKind::argument,
                  concat(op, ": index out of range: index", where, " is ",
                         static_cast<int64_t>(value), ", the dimension has size ", size));
    }
  });
}

// x and index must agree in every dimension but d.
void check_aligned(const char* op, const Tensor& x, const Tensor& index, int64_t d) {
  check_index_type(op, index);
  Shape expected = x.shape();
  if (index.rank() == x.rank()) {
    expected[d] = index.shape()[d];
  }
  check(index.shape() == expected, ErrorKind::shape, op, ": shapes differ outside dimension ", d,
        ": x is ", x.shape(), ", index is ", index.shape());
  check_range(op, index, x.shape()[d]);
}

void check_addable(const char* op, const Tensor& x, const Tensor& source) {
  check(is_float(x.dtype()) || x.dtype() == DType::i64, ErrorKind::dtype, op,
        ": takes floating-point and i64 tensors: got ", x.dtype());
  check(source.dtype() == x.dtype(), ErrorKind::dtype, op, ": dtypes differ: x is ", x.dtype(),
        ", source is ", source.dtype(), "; cast one of them");
}

// Zeros of x's shape with dy added at the selected slices: the gradient of index_select.
Tensor select_backward(const Tensor& dy, const Shape& shape, int64_t d, const Saved& index) {
  const Tensor totals = zeros(shape, accumulator(dy.dtype()), dy.device());
  Tensor sums = grouped(totals, d);
  const Tensor source = grouped(dy, d);
  const Tensor at = dense(index());
  on_device(dy.device(), [&](const auto& on) {
    kernels::select_add(on, at.view(), source.view(), sums.fresh_view());
  });
  return record("index_select backward", converted(totals, dy.dtype()),
                wrt(dy, [d, index](const Tensor& ddx) { return index_select(ddx, d, index()); }));
}

Sorted sorted(const Tensor& x, int64_t k, Order order) {
  const Tensor rows =
      reshaped(detach(dense(x)), {x.size(-1) == 0 ? 0 : x.elements() / x.size(-1), x.size(-1)});
  Shape shape = x.shape();
  shape[x.rank() - 1] = k;
  Tensor values = empty(shape, x.dtype(), x.device());
  Tensor indices = empty(shape, DType::i64, x.device());
  Tensor value_rows = reshaped(values, {rows.size(0), k});
  Tensor index_rows = reshaped(indices, {rows.size(0), k});
  on_device(x.device(), [&](const auto& on) {
    kernels::sort(on, rows.view(), order == Order::descending, value_rows.fresh_view(),
                  index_rows.fresh_view());
  });
  return {values, indices};
}

}  // namespace

Tensor gather(const Tensor& x, int64_t dim, const Tensor& index) {
  const int64_t d = x.shape().index(dim);
  check_aligned("gather", x, index, d);
  Tensor y = empty(index.shape(), x.dtype(), x.device());
  const Tensor from = grouped(x, d);
  const Tensor at = grouped(index, d);
  on_device(x.device(),
            [&](const auto& on) { kernels::gather(on, from.view(), at.view(), y.fresh_view()); });
  return record("gather", y, wrt(x, [d, shape = x.shape(), index = saved(index)](const Tensor& dy) {
                  return scatter_add(zeros(shape, dy.dtype(), dy.device()), d, index(), dy);
                }));
}

Tensor scatter_add(const Tensor& x, int64_t dim, const Tensor& index, const Tensor& source) {
  const int64_t d = x.shape().index(dim);
  check_addable("scatter_add", x, source);
  check_aligned("scatter_add", x, index, d);
  check(source.shape() == index.shape(), ErrorKind::shape, "scatter_add: shapes differ: index is ",
        index.shape(), ", source is ", source.shape());
  const DType wide = accumulator(x.dtype());
  const Tensor totals = x.dtype() == wide ? copy_of(x) : converted(x, wide);
  Tensor sums = grouped(totals, d);
  const Tensor at = grouped(index, d);
  const Tensor parts = grouped(source, d);
  on_device(x.device(), [&](const auto& on) {
    kernels::scatter_add(on, at.view(), parts.view(), sums.fresh_view());
  });
  return record(
      "scatter_add", converted(totals, x.dtype()), wrt(x, [](const Tensor& dy) { return dy; }),
      wrt(source, [d, index = saved(index)](const Tensor& dy) { return gather(dy, d, index()); }));
}

Tensor index_select(const Tensor& x, int64_t dim, const Tensor& index) {
  const int64_t d = x.shape().index(dim);
  check_index_type("index_select", index);
  check(index.rank() == 1, ErrorKind::shape,
        "index_select: the index must have one dimension: got ", index.shape());
  check_range("index_select", index, x.shape()[d]);
  Shape shape = x.shape();
  shape[d] = index.elements();
  Tensor y = empty(shape, x.dtype(), x.device());
  const Tensor from = grouped(x, d);
  const Tensor at = dense(index);
  on_device(x.device(),
            [&](const auto& on) { kernels::select(on, from.view(), at.view(), y.fresh_view()); });
  return record("index_select", y,
                wrt(x, [d, before = x.shape(), index = saved(index)](const Tensor& dy) {
                  return select_backward(dy, before, d, index);
                }));
}

Tensor one_hot(const Tensor& index, int64_t classes, DType dtype) {
  check_index_type("one_hot", index);
  check_range("one_hot", index, classes);
  Shape shape = index.shape();
  shape.push_back(classes);
  Tensor y = zeros(shape, dtype, index.device());
  Tensor rows = reshaped(y, {index.elements(), classes});
  const Tensor at = dense(index);
  on_device(index.device(),
            [&](const auto& on) { kernels::one_hot(on, at.view(), rows.fresh_view()); });
  return y;
}

Sorted sort(const Tensor& x, Order order) {
  check(x.rank() >= 1, ErrorKind::shape, "sort: takes at least one dimension: got a scalar");
  return sorted(x, x.size(-1), order);
}

Sorted topk(const Tensor& x, int64_t k) {
  check(x.rank() >= 1, ErrorKind::shape, "topk: takes at least one dimension: got a scalar");
  check(k >= 0 && k <= x.size(-1), ErrorKind::argument, "topk: k must be in [0, ", x.size(-1),
        "], the size of the last dimension: got ", k);
  return sorted(x, k, Order::descending);
}

}  // namespace ingot
