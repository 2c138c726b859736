#include "ingot/ops/linear.h"

#include <source_location>
#include <utility>

#include "ingot/autograd/record.h"
#include "ingot/device/flops.h"
#include "ingot/device/on_device.h"
#include "ingot/kernels/column_sum.h"
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

using kernels::Accumulate;

void check_inputs(const char* op, const Tensor& x, const Tensor& weight, const Tensor& bias) {
  check(is_float(x.dtype()), ErrorKind::dtype, op, ": takes floating-point tensors: got ",
        x.dtype());
  check(x.rank() >= 1 && weight.rank() == 2, ErrorKind::shape, op,
        ": takes x [..., In] and weight [Out, In]: x is ", x.shape(), ", weight is ",
        weight.shape());
  check(x.size(-1) == weight.size(1), ErrorKind::shape, op, ": inner dimensions differ: x is ",
        x.shape(), ", weight is ", weight.shape());
  check(x.dtype() == weight.dtype(), ErrorKind::dtype, op, ": dtypes differ: x is ", x.dtype(),
        ", weight is ", weight.dtype(), "; cast one of them");
  check(x.device() == weight.device(), ErrorKind::device, op, ": devices differ: x is on ",
        x.device(), ", weight is on ", weight.device());
  if (bias.defined()) {
    check(bias.shape() == Shape{weight.size(0)}, ErrorKind::shape, op,
          ": bias has not one element a row of weight: bias is ", bias.shape(), ", weight is ",
          weight.shape());
    check(bias.dtype() == weight.dtype(), ErrorKind::dtype, op, ": dtypes differ: bias is ",
          bias.dtype(), ", weight is ", weight.dtype(), "; cast one of them");
  }
}

Shape with_last(Shape shape, int64_t size) {
  shape[shape.rank() - 1] = size;
  return shape;
}

// [M, size of the last dimension].
Shape flattened(const Shape& shape) {
  int64_t rows = 1;
  for (int64_t i = 0; i + 1 < shape.rank(); ++i) {
    rows *= shape[i];
  }
  return {rows, shape[shape.rank() - 1]};
}

// x as a matrix that the kernel reads, without history: a view where possible.
Tensor as_rows(const Tensor& x) {
  const Shape flat = flattened(x.shape());
  const Tensor matrix = reshaped(can_reshape(x, flat) ? x : copy_of(x), flat);
  return kernels::matmul_reads(matrix.shape(), matrix.strides()) ? matrix : copy_of(matrix);
}

// The same with history, in the type that the gradients of parameters have.
Tensor as_wide_rows(const Tensor& x) {
  return cast(reshape(x, flattened(x.shape())), accumulator(x.dtype()));
}

// y = a b or y += a b, for matrices.
void multiply(const Tensor& a, const Tensor& b, Tensor& y, Accumulate accumulate = Accumulate::no,
              const std::source_location& caller = std::source_location::current()) {
  count_flops(2 * a.size(0) * a.size(1) * b.size(1));
  on_device(
      y.device(),
      [&](const auto& on) { kernels::matmul(on, a.view(), b.view(), y.fresh_view(), accumulate); },
      caller);
}

// x W_iᵀ + b_i.
TensorList forward(const Tensor& x, const TensorList& weights, const TensorList& biases) {
  const Tensor a = as_rows(x);
  TensorList ys, outputs, inputs, added;
  for (size_t i = 0; i < weights.size(); ++i) {
    ys.push_back(empty(with_last(x.shape(), weights[i].size(0)), x.dtype(), x.device()));
    outputs.push_back(as_rows(ys.back()));
    inputs.push_back(transposed(as_rows(weights[i]), 0, 1));
    added.push_back(biases[i].defined() ? dense(biases[i]) : Tensor());
    count_flops(2 * a.size(0) * a.size(1) * weights[i].size(0));
  }
  on_device(x.device(), [&](const auto& on) {
    std::vector<kernels::Factor> factors;
    for (size_t i = 0; i < weights.size(); ++i) {
      factors.push_back({inputs[i].view(), outputs[i].fresh_view(),
                         added[i].defined() ? added[i].view() : ConstView()});
    }
    kernels::matmuls(on, a.view(), factors);
  });
  return ys;
}

// dx = Σ_i dy_i W_i: [M, Out] [Out, In]. Each product is added in place.
Tensor input_gradient(const TensorList& dys, const TensorList& weights, const Shape& x_shape) {
  Tensor dx;
  for (size_t i = 0; i < dys.size(); ++i) {
    if (!dys[i].defined()) {
      continue;
    }
    if (recording()) {
      const Tensor part = matmul(reshape(dys[i], flattened(dys[i].shape())), weights[i]);
      dx = dx.defined() ? dx + part : part;
      continue;
    }
    const Accumulate accumulate = dx.defined() ? Accumulate::yes : Accumulate::no;
    if (!dx.defined()) {
      dx = empty(x_shape, dys[i].dtype(), dys[i].device());
    }
    Tensor rows = as_rows(dx);
    multiply(as_rows(dys[i]), as_rows(weights[i]), rows, accumulate);
  }
  return dx.defined() ? reshape(dx, x_shape) : dx;
}

// dW += dyᵀ x, in place.
void add_weight_gradient(const Tensor& dy, const Tensor& x, Tensor& dw) {
  multiply(transposed(as_rows(dy), 0, 1), as_rows(x), dw, Accumulate::yes);
}

// dW = dyᵀ x: [Out, M] [M, In], in the accumulator type.
Tensor weight_gradient(const Tensor& dy, const Tensor& x) {
  if (recording()) {
    return matmul(transpose(as_wide_rows(dy)), as_wide_rows(x));
  }
  Tensor dw = empty({dy.size(-1), x.size(-1)}, accumulator(dy.dtype()), dy.device());
  multiply(transposed(as_rows(dy), 0, 1), as_rows(x), dw);
  return dw;
}

// db = Σ_m dy_m, in the accumulator type.
Tensor bias_gradient(const Tensor& dy) {
  if (recording()) {
    return sum(as_wide_rows(dy), 0);
  }
  const Tensor rows = dense(as_rows(dy));
  Tensor db = empty({dy.size(-1)}, accumulator(dy.dtype()), dy.device());
  on_device(dy.device(),
            [&](const auto& on) { kernels::column_sum(on, rows.view(), db.fresh_view()); });
  return db;
}

// The formula of the weight that made result i.
Formula weight_formula(const Tensor& x, const Tensor& weight, size_t i) {
  Formula formula = jointly({weight}, [i, x = saved(x)](const TensorList& dys) {
    return TensorList{dys[i].defined() ? weight_gradient(dys[i], x()) : Tensor()};
  });
  formula.add_to = [i, x = saved(x)](const TensorList& dys, Tensor& sum) {
    if (dys[i].defined()) {
      add_weight_gradient(dys[i], x(), sum);
    }
  };
  return formula;
}

}  // namespace

Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  return linears(x, {weight}, {bias}).front();
}

TensorList linears(const Tensor& x, const TensorList& weights, const TensorList& given_biases) {
  check(given_biases.empty() || given_biases.size() == weights.size(), ErrorKind::argument,
        "linears: takes no biases or one a weight: ", weights.size(), " weights, ",
        given_biases.size(), " biases");
  const TensorList biases = given_biases.empty() ? TensorList(weights.size()) : given_biases;
  for (size_t i = 0; i < weights.size(); ++i) {
    check_inputs("linear", x, weights[i], biases[i]);
  }
  TensorList ys = forward(x, weights, biases);
  std::vector<Saved> kept;
  std::vector<Formula> formulas;
  for (size_t i = 0; i < weights.size(); ++i) {
    kept.push_back(saved(weights[i]));
    formulas.push_back(weight_formula(x, weights[i], i));
    formulas.push_back(jointly({biases[i]}, [i](const TensorList& dys) {
      return TensorList{dys[i].defined() ? bias_gradient(dys[i]) : Tensor()};
    }));
  }
  formulas.push_back(
      jointly({x}, [kept = std::move(kept), shape = x.shape()](const TensorList& dys) {
        TensorList used;
        for (const Saved& weight : kept) {
          used.push_back(weight());
        }
        return TensorList{input_gradient(dys, used, shape)};
      }));
  return record_formulas("linear", std::move(ys), std::move(formulas));
}

Tensor add_linear(Tensor y, const Tensor& x, const Tensor& weight) {
  check_inputs("add_linear", x, weight, {});
  check(y.shape() == with_last(x.shape(), weight.size(0)) && y.dtype() == x.dtype(),
        ErrorKind::shape, "add_linear: y is not of the product's shape and type: y is ", y.shape(),
        " ", y.dtype(), ", x is ", x.shape(), " ", x.dtype(), ", weight is ", weight.shape());
  const Tensor behind = history_of(y);
  const bool alone = y.storage().use_count() == 1 && y.dense() && y.storage()->writable();
  Tensor out = alone ? detach(y) : copy_of(y);
  y = Tensor();
  {
    Tensor rows = as_rows(out);
    multiply(as_rows(x), transposed(as_rows(weight), 0, 1), rows, Accumulate::yes);
  }
  return record_formulas(
      "add_linear", std::move(out),
      {wrt(behind, [](const Tensor& dy) { return dy; }), weight_formula(x, weight, 0),
       wrt(x, [weight = saved(weight), shape = x.shape()](const Tensor& dy) {
         return input_gradient({dy}, {weight()}, shape);
       })});
}

}  // namespace ingot
