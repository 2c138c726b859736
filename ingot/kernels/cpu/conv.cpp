#include "ingot/kernels/conv.h"

#include <optional>

#include "ingot/kernels/cpu/conv_routes.h"
#include "ingot/kernels/cpu/widened.h"

// f64 goes through plain loops, f32 and bf16 through oneDNN, and what oneDNN lacks on the processor
// through f32 copies.

namespace ingot::kernels {
namespace {

void check_done(bool done, DType dtype) {
  check(done, ErrorKind::internal, "conv: oneDNN has no convolution of ", name(dtype));
}

}  // namespace

void conv(const Cpu& on, const ConstView& x, const ConstView& w, const ConstView& bias,
          const ConvSteps& steps, const View& y) {
  if (y.elements() == 0) {
    return;
  }
  if (x.dtype == DType::f64) {
    conv_f64(x, w, bias, steps, y);
  } else if (x.dtype == DType::f16 || !conv_onednn(x, w, bias, steps, y)) {
    check_done(x.dtype != DType::f32, x.dtype);
    const Widened wide_x(on, x);
    const Widened wide_w(on, w);
    const Widened wide_y(y.shape);
    std::optional<Widened> wide_bias;
    if (bias.data != nullptr) {
      wide_bias.emplace(on, bias);
    }
    conv(on, wide_x.view(), wide_w.view(), wide_bias ? ConstView(wide_bias->view()) : ConstView(),
         steps, wide_y.view());
    copy(on, wide_y.view(), y);
  }
}

void conv_input_gradient(const Cpu& on, const ConstView& dy, const ConstView& w,
                         const ConvSteps& steps, const View& dx) {
  if (dx.elements() == 0) {
    return;
  }
  if (dy.dtype == DType::f64) {
    conv_input_gradient_f64(dy, w, steps, dx);
  } else if (dy.dtype == DType::f16 || !conv_input_gradient_onednn(dy, w, steps, dx)) {
    check_done(dy.dtype != DType::f32, dy.dtype);
    const Widened wide_dy(on, dy);
    const Widened wide_w(on, w);
    const Widened wide_dx(dx.shape);
    conv_input_gradient(on, wide_dy.view(), wide_w.view(), steps, wide_dx.view());
    copy(on, wide_dx.view(), dx);
  }
}

void conv_weight_gradient(const Cpu& on, const ConstView& dy, const ConstView& x,
                          const ConvSteps& steps, const View& dw) {
  if (dy.elements() == 0) {
    fill(on, 0, dw);
    return;
  }
  if (dy.dtype == DType::f64) {
    conv_weight_gradient_f64(dy, x, steps, dw);
  } else if (dy.dtype == DType::f16 || !conv_weight_gradient_onednn(dy, x, steps, dw)) {
    check_done(dy.dtype != DType::f32, dy.dtype);
    const Widened wide_dy(on, dy);
    const Widened wide_x(on, x);
    conv_weight_gradient(on, wide_dy.view(), wide_x.view(), steps, dw);
  }
}

}  // namespace ingot::kernels
