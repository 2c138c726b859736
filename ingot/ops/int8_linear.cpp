#include "ingot/ops/int8_linear.h"

#include <algorithm>

#include "ingot/autograd/record.h"
#include "ingot/device/flops.h"
#include "ingot/device/on_device.h"
#include "ingot/kernels/int8.h"
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

constexpr int64_t few_rows = 16;  // beyond them decoding the weight once is cheaper

void check_inputs(const Tensor& x, const Int8Weight& w, const Tensor& bias) {
  check(is_float(x.dtype()), ErrorKind::dtype, "int8_linear: takes floating-point tensors: got ",
        x.dtype());
  check(x.rank() >= 1 && x.size(-1) == w.codes.size(1), ErrorKind::shape,
        "int8_linear: inner dimensions differ: x is ", x.shape(), ", codes are ", w.codes.shape());
  check(x.device() == w.codes.device(), ErrorKind::device, "int8_linear: devices differ: x is on ",
        x.device(), ", codes are on ", w.codes.device());
  check(!bias.defined() || (bias.shape() == Shape{w.codes.size(0)} && bias.dtype() == x.dtype()),
        ErrorKind::shape,
        "int8_linear: bias has not one element a row of weight in the type of x: ", "bias is ",
        bias.defined() ? bias.shape() : Shape(), ", codes are ", w.codes.shape());
}

// Rows [begin, end) of the weight.
Int8Weight rows_of(const Int8Weight& w, int64_t begin, int64_t end) {
  return {sliced(w.codes, 0, begin, end), sliced(w.scales, 0, begin, end)};
}

// Calls body(begin, weight rows as a matrix [·, In]) for blocks of rows of W.
template <class F>
void each_block(const Int8Weight& w, DType dtype, F&& body) {
  constexpr int64_t block_elements = int64_t{1} << 21;
  const int64_t rows = w.codes.size(0);
  const int64_t step =
      std::max<int64_t>(64, block_elements / std::max<int64_t>(1, w.codes.size(1)));
  for (int64_t begin = 0; begin < rows; begin += step) {
    const PurposeScope scope(Purpose::workspace);
    body(begin, dense_weight(rows_of(w, begin, std::min(begin + step, rows)), dtype));
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

Tensor forward(const Tensor& x, const Int8Weight& w, const Tensor& bias) {
  Shape shape = x.shape();
  shape[shape.rank() - 1] = w.codes.size(0);
  Tensor y = empty(shape, x.dtype(), x.device());
  if (y.elements() == 0) {
    return y;
  }
  const Tensor rows = rows_without_history(x);
  Tensor flat = reshaped(y, {rows.size(0), w.codes.size(0)});
  const Tensor added = bias.defined() ? dense(detach(bias)) : bias;
  count_flops(2 * rows.size(0) * w.codes.elements());
  if (rows.size(0) <= few_rows && x.dtype() != DType::f64) {
    on_device(x.device(), [&](const auto& on) {
      kernels::int8_few_rows(on, rows.view(), w.codes.view(), w.scales.view(),
                             added.defined() ? added.view() : ConstView(), flat.fresh_view());
    });
    return y;
  }
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
Tensor input_gradient(const Tensor& dy, const Int8Weight& w, const Shape& x_shape) {
  if (recording()) {
    const Tensor rows = reshape(dy, flattened(dy.shape()));
    return reshape(matmul(rows, dense_weight(w, dy.dtype())), x_shape);
  }
  if (dy.size(-1) == 0) {
    return zeros(x_shape, dy.dtype(), dy.device());
  }
  Tensor dx = empty(x_shape, dy.dtype(), dy.device());
  if (dx.elements() == 0) {
    return dx;
  }
  const Tensor rows = rows_without_history(dy);
  Tensor flat = reshaped(dx, {rows.size(0), w.codes.size(1)});
  count_flops(2 * rows.size(0) * w.codes.elements());
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

Int8Weight int8_weight(const Tensor& weight) {
  check(is_float(weight.dtype()), ErrorKind::dtype,
        "int8_weight: takes floating-point weights: got ", weight.dtype());
  check(weight.rank() == 2, ErrorKind::shape, "int8_weight: takes a matrix [Out, In]: got ",
        weight.shape());
  const bool wide = weight.dtype() == DType::f64;
  const Tensor from = dense(wide ? converted(detach(weight), DType::f32) : detach(weight));
  Int8Weight out{
      empty(weight.shape(), DType::i8, weight.device()),
      empty({weight.size(0), kernels::int8_groups(weight.size(1))}, DType::f32, weight.device())};
  on_device(weight.device(), [&](const auto& on) {
    kernels::int8_encode(on, from.view(), out.codes.fresh_view(), out.scales.fresh_view());
  });
  return out;
}

Tensor dense_weight(const Int8Weight& weight, DType dtype) {
  check(is_float(dtype), ErrorKind::dtype, "dense_weight: takes a floating-point type: got ",
        dtype);
  Tensor out = empty(weight.codes.shape(), dtype, weight.codes.device());
  on_device(out.device(), [&](const auto& on) {
    kernels::int8_decode(on, weight.codes.view(), weight.scales.view(), out.fresh_view());
  });
  return out;
}

Tensor int8_linear(const Tensor& x, const Int8Weight& weight, const Tensor& bias) {
  check_inputs(x, weight, bias);
  return record("int8_linear", forward(x, weight, bias),
                wrt(x, [weight, shape = x.shape()](
                           const Tensor& dy) { return input_gradient(dy, weight, shape); }),
                wrt(bias, [](const Tensor& dy) {
                  const Tensor rows = reshape(dy, flattened(dy.shape()));
                  return sum(cast(rows, accumulator(dy.dtype())), 0);
                }));
}

}  // namespace ingot
