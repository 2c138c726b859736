#include "ingot/ops/conv.h"

#include "ingot/autograd/record.h"
#include "ingot/device/flops.h"
#include "ingot/device/on_device.h"
#include "ingot/kernels/conv.h"
#include "ingot/ops/reduce.h"
#include "ingot/ops/shape.h"
#include "ingot/tensor/copy.h"
#include "ingot/tensor/factories.h"

// The three products of a convolution, y = x ∗ w, dx = dy ∗ᵀ w and dw = dy ⋆ x, are each linear in
// two tensors, and the gradients of each are the other two: so all derivatives are here.

namespace ingot {
namespace {

using kernels::ConvSteps;

struct Geometry {
  ConvSteps steps;
  Shape x;  // [B, C, Y, X]
  Shape w;  // [O, C/groups, P, Q]
  Shape y;  // [B, O, Y', X']

  int64_t flops() const { return 2 * y.elements() * w[1] * w[2] * w[3]; }
};

Tensor forward(const Tensor& x, const Tensor& w, const Tensor& bias, const Geometry& g);
Tensor input_gradient(const Tensor& dy, const Tensor& w, const Geometry& g);
Tensor weight_gradient(const Tensor& dy, const Tensor& x, const Geometry& g);

// Σ over all but the channels, in the accumulator type.
Tensor bias_gradient(const Tensor& dy) {
  const Shape planes{dy.size(0), dy.size(1), dy.size(2) * dy.size(3)};
  return sum(sum(reshape(cast(dy, accumulator(dy.dtype())), planes), 2), 0);
}

Tensor forward(const Tensor& x, const Tensor& w, const Tensor& bias, const Geometry& g) {
  Tensor y = empty(g.y, x.dtype(), x.device());
  const Tensor dense_x = dense(x);
  const Tensor dense_w = dense(w);
  const Tensor dense_bias = bias.defined() ? dense(bias) : bias;
  count_flops(g.flops());
  on_device(x.device(), [&](const auto& on) {
    kernels::conv(on, dense_x.view(), dense_w.view(),
                  bias.defined() ? dense_bias.view() : ConstView(), g.steps, y.fresh_view());
  });
  return record("conv", y,
                wrt(x, [g, w = saved(w)](const Tensor& dy) { return input_gradient(dy, w(), g); }),
                wrt(w, [g, x = saved(x)](const Tensor& dy) { return weight_gradient(dy, x(), g); }),
                bias.defined() ? wrt(bias, bias_gradient) : Formula());
}

Tensor input_gradient(const Tensor& dy, const Tensor& w, const Geometry& g) {
  Tensor dx = empty(g.x, dy.dtype(), dy.device());
  const Tensor dense_dy = dense(dy);
  const Tensor dense_w = dense(w);
  count_flops(g.flops());
  on_device(dy.device(), [&](const auto& on) {
    kernels::conv_input_gradient(on, dense_dy.view(), dense_w.view(), g.steps, dx.fresh_view());
  });
  return record(
      "conv backward", dx,
      wrt(dy, [g, w = saved(w)](const Tensor& ddx) { return forward(ddx, w(), {}, g); }),
      wrt(w, [g, dy = saved(dy)](const Tensor& ddx) { return weight_gradient(dy(), ddx, g); }));
}

Tensor weight_gradient(const Tensor& dy, const Tensor& x, const Geometry& g) {
  Tensor dw = empty(g.w, accumulator(dy.dtype()), dy.device());
  const Tensor dense_dy = dense(dy);
  const Tensor dense_x = dense(x);
  count_flops(g.flops());
  on_device(dy.device(), [&](const auto& on) {
    kernels::conv_weight_gradient(on, dense_dy.view(), dense_x.view(), g.steps, dw.fresh_view());
  });
  return record(
      "conv backward", dw,
      wrt(dy, [g, x = saved(x)](
                  const Tensor& ddw) { return forward(x(), cast(ddw, x().dtype()), {}, g); }),
      wrt(x, [g, dy = saved(dy)](const Tensor& ddw) {
        return input_gradient(dy(), cast(ddw, dy().dtype()), g);
      }));
}

// ⌊(size + 2 padding − reach) / stride⌋ + 1, where the taps reach over dilation (taps − 1) + 1.
int64_t result_size(const char* op, int64_t size, int64_t taps, const ConvOptions& options) {
  const int64_t reach = options.dilation * (taps - 1) + 1;
  const int64_t padded = size + 2 * options.padding;
  check(padded >= reach, ErrorKind::shape, op,
        ": the weight reaches over more than the input: ", "it spans ", reach,
        ", the padded input has ", padded);
  return (padded - reach) / options.stride + 1;
}

void check_inputs(const char* op, int64_t rank, const Tensor& x, const Tensor& w,
                  const Tensor& bias, const ConvOptions& options) {
  check(is_float(x.dtype()), ErrorKind::dtype, op, ": takes floating-point tensors: got ",
        x.dtype());
  check(x.rank() == rank && w.rank() == rank, ErrorKind::shape, op, ": takes x and weight of ",
        rank, " dimensions: x is ", x.shape(), ", weight is ", w.shape());
  check(x.dtype() == w.dtype() && (!bias.defined() || bias.dtype() == x.dtype()), ErrorKind::dtype,
        op, ": dtypes differ: x is ", x.dtype(), ", weight is ", w.dtype(), ", bias is ",
        bias.defined() ? name(bias.dtype()) : "absent", "; cast one of them");
  check(x.device() == w.device(), ErrorKind::device, op, ": devices differ: x is on ", x.device(),
        ", weight is on ", w.device());
  check(options.stride >= 1 && options.dilation >= 1 && options.padding >= 0 && options.groups >= 1,
        ErrorKind::argument, op, ": stride, dilation and groups start at 1, padding at 0: got ",
        options.stride, ", ", options.dilation, ", ", options.groups, ", ", options.padding);
  check(w.elements() > 0, ErrorKind::shape, op, ": weight has no elements: ", w.shape());
  check(w.size(0) % options.groups == 0 && x.size(1) == w.size(1) * options.groups,
        ErrorKind::shape, op, ": channels do not fit: x is ", x.shape(), ", weight is ", w.shape(),
        ", groups are ", options.groups);
  check(!bias.defined() || bias.shape() == Shape{w.size(0)}, ErrorKind::shape, op,
        ": bias has not one element an output channel: bias is ",
        bias.defined() ? bias.shape() : Shape{}, ", weight is ", w.shape());
}

}  // namespace

Tensor conv2d(const Tensor& x, const Tensor& w, const Tensor& bias, const ConvOptions& options) {
  check_inputs("conv2d", 4, x, w, bias, options);
  const Geometry g{{{options.stride, options.stride},
                    {options.padding, options.padding},
                    {options.dilation, options.dilation},
                    options.groups},
                   x.shape(),
                   w.shape(),
                   {x.size(0), w.size(0), result_size("conv2d", x.size(2), w.size(2), options),
                    result_size("conv2d", x.size(3), w.size(3), options)}};
  return forward(x, w, bias, g);
}

Tensor conv1d(const Tensor& x, const Tensor& w, const Tensor& bias, const ConvOptions& options) {
  check_inputs("conv1d", 3, x, w, bias, options);
  const Tensor plane = unsqueeze(x, 2);  // [B, C, 1, L]
  const Tensor taps = unsqueeze(w, 2);   // [O, C/groups, 1, W]
  const Geometry g{
      {{1, options.stride}, {0, options.padding}, {1, options.dilation}, options.groups},
      plane.shape(),
      taps.shape(),
      {x.size(0), w.size(0), 1, result_size("conv1d", x.size(2), w.size(2), options)}};
  return squeeze(forward(plane, taps, bias, g), 2);
}

}  // namespace ingot
