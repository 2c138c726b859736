#include "ingot/ops/coded_linear.h"

#include <algorithm>

#include "ingot/autograd/record.h"
#include "ingot/device/flops.h"
#include "ingot/device/on_device.h"
#include "ingot/kernels/matmul.h"
#include "ingot/ops/elementwise.h"
#include "ingot/ops/matmul.h"
#include "ingot/ops/reduce.h"
#include "ingot/ops/shape.h"
#include "ingot/tensor/copy.h"
#include "ingot/tensor/factories.h"
#include "ingot/tensor/layout.h"

// In the comments: M rows of x (the product of its leading dimensions), In, Out.

namespace ingot {
namespace {

void check_inputs(const Tensor& x, const CodedWeight& w, const Tensor& bias) {
  check(is_float(x.dtype()), ErrorKind::dtype, "coded_linear: takes floating-point tensors: got ",
        x.dtype());
  check(x.rank() >= 1 && x.size(-1) == w.columns(), ErrorKind::shape,
        "coded_linear: inner dimensions differ: x is ", x.shape(), ", the weight is [", w.rows(),
        ", ", w.columns(), "]");
  check(x.device() == w.device(), ErrorKind::device, "coded_linear: devices differ: x is on ",
        x.device(), ", the weight is on ", w.device());
  check(!bias.defined() || (bias.shape() == Shape{w.rows()} && bias.dtype() == x.dtype()),
        ErrorKind::shape,
        "coded_linear: bias has not one element a row of weight in the type of x: bias is ",
        bias.defined() ? bias.shape() : Shape(), ", the weight has ", w.rows(), " rows");
}

// Calls body(begin, weight rows as a matrix [·, In]) for blocks of rows of W.
template <class F>
void each_block(const CodedWeight& w, DType dtype, F&& body) {
  constexpr int64_t block_elements = int64_t{1} << 21;
  const int64_t step = std::max<int64_t>(64, block_elements / std::max<int64_t>(1, w.columns()));
  for (int64_t begin = 0; begin < w.rows(); begin += step) {
    const PurposeScope scope(Purpose::workspace);
    body(begin, w.decoded(begin, std::min(begin + step, w.rows()), dtype));
  }
}

// [M, size of the last dimension]; sizes of 0 stay what they are.
Shape flattened(const Shape& shape) {
  int64_t rows = 1;
  for (int64_t i = 0; i + 1 < shape.rank(); ++i) {
    rows *= shape[i];
  }
  return {rows, shape[shape.rank() - 1]};
}

Tensor rows_without_history(const Tensor& x) {
  return reshaped(dense(detach(x)), flattened(x.shape()));
}

Tensor forward(const Tensor& x, const CodedWeight& w, const Tensor& bias) {
  Shape shape = x.shape();
  shape[shape.rank() - 1] = w.rows();
  const Tensor rows = rows_without_history(x);
  const Tensor added = bias.defined() ? dense(detach(bias)) : bias;
  count_flops(2 * rows.size(0) * w.rows() * w.columns());
  if (rows.size(0) > 0 && w.rows() > 0) {
    if (const Tensor fast = w.few_rows(rows, added); fast.defined()) {
      return reshaped(fast, shape);
    }
  }
  Tensor y = empty(shape, x.dtype(), x.device());
  if (y.elements() == 0) {
    return y;
  }
  Tensor flat = reshaped(y, {rows.size(0), w.rows()});
  each_block(w, x.dtype(), [&](int64_t begin, const Tensor& block) {
    const int64_t end = begin + block.size(0);
    Tensor part = sliced(flat, 1, begin, end);
    on_device(x.device(), [&](const auto& on) {
      kernels::matmul(on, rows.view(), transposed(block, 0, 1).view(), part.fresh_view(),
                      kernels::Accumulate::no,
                      added.defined() ? sliced(added, 0, begin, end).view() : ConstView());
    });
  });
  return y;
}

// dx = dy W: [M, Out] [Out, In].
Tensor input_gradient(const Tensor& dy, const CodedWeight& w, const Shape& x_shape) {
  if (recording()) {
    const Tensor rows = reshape(dy, flattened(dy.shape()));
    return reshape(matmul(rows, w.decoded(0, w.rows(), dy.dtype())), x_shape);
  }
  if (dy.size(-1) == 0) {
    return zeros(x_shape, dy.dtype(), dy.device());
  }
  Tensor dx = empty(x_shape, dy.dtype(), dy.device());
  if (dx.elements() == 0) {
    return dx;
  }
  const Tensor rows = rows_without_history(dy);
  Tensor flat = reshaped(dx, {rows.size(0), w.columns()});
  count_flops(2 * rows.size(0) * w.rows() * w.columns());
  each_block(w, dy.dtype(), [&](int64_t begin, const Tensor& block) {
    const Tensor part = sliced(rows, 1, begin, begin + block.size(0));
    on_device(dy.device(), [&](const auto& on) {
      kernels::matmul(on, part.view(), block.view(), flat.fresh_view(),
                      begin == 0 ? kernels::Accumulate::no : kernels::Accumulate::yes);
    });
  });
  return dx;
}

}  // namespace

Tensor coded_linear(const Tensor& x, const std::shared_ptr<const CodedWeight>& weight,
                    const Tensor& bias) {
  check_inputs(x, *weight, bias);
  return record("coded_linear", forward(x, *weight, bias),
                wrt(x, [weight, shape = x.shape()](
                           const Tensor& dy) { return input_gradient(dy, *weight, shape); }),
                wrt(bias, [](const Tensor& dy) {
                  const Tensor rows = reshape(dy, flattened(dy.shape()));
                  return sum(cast(rows, accumulator(dy.dtype())), 0);
                }));
}

}  // namespace ingot
