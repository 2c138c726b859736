#include "ingot/ops/norm.h"

#include "ingot/autograd/record.h"
#include "ingot/device/on_device.h"
#include "ingot/kernels/norm.h"
#include "ingot/ops/elementwise.h"
#include "ingot/ops/reduce.h"
#include "ingot/ops/shape.h"
#include "ingot/tensor/copy.h"
#include "ingot/tensor/factories.h"

namespace ingot {
namespace {

enum class Kind : uint8_t { layer, rms };

// What a norm adds to its input's mean square, and to its gains.
struct Constants {
  double eps;
  double gain_offset = 0;
};

void check_inputs(const char* op, const Tensor& x, const Tensor& weight, const Tensor& bias) {
  check(is_float(x.dtype()), ErrorKind::dtype, op, ": takes floating-point tensors: got ",
        x.dtype());
  check(x.rank() >= 1, ErrorKind::shape, op, ": takes at least one dimension: got a scalar");
  const auto check_vector = [&](const char* what, const Tensor& v) {
    check(!v.defined() || v.shape() == Shape{x.size(-1)}, ErrorKind::shape, op, ": the ", what,
          " must have the size of the last dimension: x is ", x.shape(), ", ", what, " is ",
          v.shape());
    check(!v.defined() || v.dtype() == x.dtype(), ErrorKind::dtype, op, ": x and ", what,
          " differ in type: x is ", x.dtype(), ", ", what, " is ", v.dtype());
  };
  check_vector("weight", weight);
  check_vector("bias", bias);
}

ConstView view_of(const Tensor& x) { return x.defined() ? x.view() : ConstView(); }
View fresh_view_of(Tensor& x) { return x.defined() ? x.fresh_view() : View(); }

// What a forward makes: the results, and the statistics its backward needs.
struct Normed {
  Tensor y, sum, mean, rstd;
};

Normed forward(Kind kind, const Tensor& x, const Tensor& residual, const Tensor& weight,
               const Tensor& bias, const Constants& constants) {
  const DType wide = accumulator(x.dtype());
  const Shape rows(std::span(x.shape().begin(), static_cast<size_t>(x.rank() - 1)));
  Normed out;
  out.y = empty(x.shape(), x.dtype(), x.device());
  out.rstd = empty(rows, wide, x.device());
  if (kind == Kind::layer) {
    out.mean = empty(rows, wide, x.device());
  }
  if (residual.defined()) {
    out.sum = empty(x.shape(), x.dtype(), x.device());
  }
  on_device(x.device(), [&](const auto& on) {
    const kernels::NormForward args{x.view(),
                                    view_of(residual),
                                    view_of(weight),
                                    view_of(bias),
                                    fresh_view_of(out.sum),
                                    out.y.fresh_view(),
                                    fresh_view_of(out.mean),
                                    out.rstd.fresh_view(),
                                    constants.eps,
                                    constants.gain_offset};
    kind == Kind::layer ? kernels::layer_norm(on, args) : kernels::rms_norm(on, args);
  });
  if (!out.sum.defined()) {
    out.sum = x;
  }
  return out;
}

// What the backward reads and which gradients are wanted.
struct Kept {
  Kind kind;
  Saved sum, weight, bias;
  Tensor mean, rstd;
  bool wants_weight, wants_bias;
  Constants constants;
};

Kept keep(Kind kind, const Normed& out, const Tensor& weight, const Tensor& bias,
          const Constants& constants) {
  return {kind,
          saved(out.sum),
          saved(weight),
          saved(bias),
          out.mean,
          out.rstd,
          weight.defined() && needs_grad(weight),
          bias.defined() && needs_grad(bias),
          constants};
}

// {dx, dweight, dbias} in one pass over memory. `dsum` may be undefined.
TensorList fused_backward(const Kept& kept, const Tensor& gradient, const Tensor& dsum) {
  const Tensor& sum = kept.sum();
  const Tensor dy = dense(gradient);
  const Tensor direct = dsum.defined() ? dense(dsum) : dsum;
  const DType wide = accumulator(sum.dtype());
  const Shape features{sum.size(-1)};
  Tensor dx = empty(sum.shape(), sum.dtype(), sum.device());
  Tensor dweight = kept.wants_weight ? empty(features, wide, sum.device()) : Tensor();
  Tensor dbias = kept.wants_bias ? empty(features, wide, sum.device()) : Tensor();
  on_device(sum.device(), [&](const auto& on) {
    const kernels::NormBackward args{sum.view(),
                                     view_of(kept.weight()),
                                     view_of(kept.mean),
                                     kept.rstd.view(),
                                     dy.view(),
                                     view_of(direct),
                                     dx.fresh_view(),
                                     fresh_view_of(dweight),
                                     fresh_view_of(dbias),
                                     kept.constants.gain_offset};
    kept.kind == Kind::layer ? kernels::layer_norm_backward(on, args)
                             : kernels::rms_norm_backward(on, args);
  });
  return {dx, dweight, dbias};
}

// The same formulas in operations, for gradients that are differentiated again.
TensorList composed_backward(const Kept& kept, const Tensor& dy) {
  const DType type = kept.sum().dtype();
  const DType wide = accumulator(type);
  const bool centered = kept.kind == Kind::layer;
  const Tensor& weight = kept.weight();
  const Tensor x = cast(kept.sum(), wide);
  const Tensor dy_wide = cast(dy, wide);
  const Tensor c = centered ? x - mean(x, -1, Keep::yes) : x;
  const Tensor rstd = rsqrt(mean(square(c), -1, Keep::yes) + kept.constants.eps);
  const Tensor normed = c * rstd;
  const Tensor g =
      weight.defined() ? dy_wide * (cast(weight, wide) + kept.constants.gain_offset) : dy_wide;
  Tensor shifted = g - normed * mean(g * normed, -1, Keep::yes);
  if (centered) {
    shifted = shifted - mean(g, -1, Keep::yes);
  }
  const Shape features{x.size(-1)};
  return {cast(rstd * shifted, type),
          kept.wants_weight ? sum_to(dy_wide * normed, features) : Tensor(),
          kept.wants_bias ? sum_to(dy_wide, features) : Tensor()};
}

Tensor normalized(const char* op, Kind kind, const Tensor& input, const Tensor& weight,
                  const Tensor& bias, const Constants& constants) {
  check_inputs(op, input, weight, bias);
  const Tensor x = contiguous(input);
  const Tensor w = weight.defined() ? contiguous(weight) : weight;
  const Tensor b = bias.defined() ? contiguous(bias) : bias;
  const Normed out = forward(kind, x, {}, w, b, constants);
  return record(
      op, out.y,
      jointly({x, w, b}, [kept = keep(kind, out, w, b, constants)](const TensorList& dys) {
        return recording() ? composed_backward(kept, dys[0]) : fused_backward(kept, dys[0], {});
      }));
}

NormedSum normalized_sum(const char* op, Kind kind, const Tensor& input, const Tensor& residual,
                         const Tensor& weight, const Tensor& bias, const Constants& constants) {
  check_inputs(op, input, weight, bias);
  check(residual.shape() == input.shape() && residual.dtype() == input.dtype(), ErrorKind::shape,
        op, ": x and residual differ: x is ", input.dtype(), " ", input.shape(), ", residual is ",
        residual.dtype(), " ", residual.shape());
  const Tensor x = contiguous(input);
  const Tensor r = contiguous(residual);
  const Tensor w = weight.defined() ? contiguous(weight) : weight;
  const Tensor b = bias.defined() ? contiguous(bias) : bias;
  const Normed out = forward(kind, x, r, w, b, constants);
  const TensorList behind = {history_of(x), history_of(r)};
  const auto vjp = [kept = keep(kind, out, w, b, constants), behind,
                    op](const TensorList& dys) -> TensorList {
    if (!dys[0].defined()) {  // only the sum was used
      return {dys[1], dys[1], Tensor(), Tensor()};
    }
    TensorList grads = fused_backward(kept, dys[0], dys[1]);
    if (recording()) {
      const TensorList from = {behind[0], behind[1], kept.weight(), dys[0], dys[1]};
      for (Tensor& grad : grads) {
        grad = grad.defined() ? record(op, grad, first_order_only(op, from)) : grad;
      }
    }
    return {grads[0], grads[0], grads[1], grads[2]};
  };
  const TensorList results = record(op, TensorList{out.y, out.sum}, jointly({x, r, w, b}, vjp));
  return {results[0], results[1]};
}

}  // namespace

Tensor layer_norm(const Tensor& x, const Tensor& weight, const Tensor& bias, double eps) {
  return normalized("layer_norm", Kind::layer, x, weight, bias, {eps});
}

Tensor rms_norm(const Tensor& x, const Tensor& weight, double eps, double gain_offset) {
  return normalized("rms_norm", Kind::rms, x, weight, {}, {eps, gain_offset});
}

NormedSum add_rms_norm(const Tensor& x, const Tensor& residual, const Tensor& weight, double eps,
                       double gain_offset) {
  return normalized_sum("add_rms_norm", Kind::rms, x, residual, weight, {}, {eps, gain_offset});
}

NormedSum add_layer_norm(const Tensor& x, const Tensor& residual, const Tensor& weight,
                         const Tensor& bias, double eps) {
  return normalized_sum("add_layer_norm", Kind::layer, x, residual, weight, bias, {eps});
}

}  // namespace ingot
