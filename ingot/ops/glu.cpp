#include "ingot/ops/glu.h"

#include "ingot/autograd/record.h"
#include "ingot/device/on_device.h"
#include "ingot/kernels/glu.h"
#include "ingot/ops/shape.h"
#include "ingot/tensor/copy.h"
#include "ingot/tensor/factories.h"
#include "ingot/tensor/layout.h"

namespace ingot {
namespace {

kernels::Unary function_of(Gate gate) {
  switch (gate) {
    case Gate::silu: return kernels::Unary::silu;
    case Gate::gelu: return kernels::Unary::gelu;
    case Gate::gelu_tanh: return kernels::Unary::gelu_tanh;
    case Gate::sigmoid: return kernels::Unary::sigmoid;
    case Gate::relu: return kernels::Unary::relu;
  }
  throw Error(ErrorKind::internal, "gated: not one of the activations");
}

Shape as_rows(const Shape& shape) {
  if (shape.rank() == 0) {
    return {1, 1};
  }
  return {shape.size(-1) == 0 ? 0 : shape.elements() / shape.size(-1), shape.size(-1)};
}

// Half of a fused projection is read in place: its rows are whole, only farther apart.
Tensor with_whole_rows(const Tensor& x) {
  const bool whole = x.rank() > 0 && (x.size(-1) <= 1 || x.strides()[x.rank() - 1] == 1);
  return whole && can_reshape(x, as_rows(x.shape())) ? x : contiguous(x);
}

}  // namespace

Tensor gated(const Tensor& gate, const Tensor& up, Gate activation) {
  check(is_float(gate.dtype()), ErrorKind::dtype, "gated: takes floating-point tensors: got ",
        gate.dtype());
  check(gate.shape() == up.shape() && gate.dtype() == up.dtype(), ErrorKind::shape,
        "gated: gate and up differ: gate is ", gate.dtype(), " ", gate.shape(), ", up is ",
        up.dtype(), " ", up.shape());
  const Tensor g = with_whole_rows(gate);
  const Tensor u = with_whole_rows(up);
  const Shape rows = as_rows(g.shape());
  Tensor y = empty(g.shape(), g.dtype(), g.device());
  on_device(g.device(), [&](const auto& on) {
    kernels::gated(on, reshaped(g, rows).view(), reshaped(u, rows).view(), function_of(activation),
                   reshaped(y, rows).fresh_view());
  });
  const auto vjp = [g = saved(g), u = saved(u), rows, activation](const TensorList& dys) {
    const Tensor dy = dense(dys[0]);
    Tensor dgate = empty(dy.shape(), dy.dtype(), dy.device());
    Tensor dup = empty(dy.shape(), dy.dtype(), dy.device());
    on_device(dy.device(), [&](const auto& on) {
      kernels::gated_backward(on, reshaped(g(), rows).view(), reshaped(u(), rows).view(),
                              reshaped(dy, rows).view(), function_of(activation),
                              reshaped(dgate, rows).fresh_view(), reshaped(dup, rows).fresh_view());
    });
    return record("gated", TensorList{dgate, dup}, first_order_only("gated", {g(), u(), dys[0]}));
  };
  return record("gated", y, jointly({g, u}, vjp));
}

}  // namespace ingot
