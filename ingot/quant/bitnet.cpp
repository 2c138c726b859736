#include "ingot/quant/bitnet.h"

#include "ingot/autograd/grad_mode.h"
#include "ingot/ops/elementwise.h"
#include "ingot/ops/linear.h"
#include "ingot/ops/reduce.h"
#include "ingot/quant/fake_quantize.h"
#include "ingot/tensor/factories.h"

namespace ingot::quant {
namespace {

constexpr double least_scale = 1e-5;

Rounded rounded(const Tensor& x, const Tensor& scale, double low, double high) {
  Rounded out;
  out.codes = clamp(nearest_integer(x / scale), low, high);
  out.scale = scale;
  out.values = out.codes * scale;
  return out;
}

Tensor at_least_least(const Tensor& x) {
  return maximum(x, full({}, least_scale, x.dtype(), x.device()));
}

}  // namespace

Rounded ternary_weight(const Tensor& weight) {
  Rounded out;
  {
    const NoGrad quiet;
    out = rounded(weight, at_least_least(mean(abs(weight))), -1, 1);
  }
  out.values = in_place_of(weight, out.values);
  return out;
}

Rounded int8_activations(const Tensor& x) {
  Rounded out;
  {
    const NoGrad quiet;
    out = rounded(x, at_least_least(max(abs(x), -1, Keep::yes)) / 127, -128, 127);
  }
  out.values = in_place_of(x, out.values);
  return out;
}

Tensor bitnet_linear(const Tensor& x, const Tensor& weight) {
  return linear(int8_activations(x).values, ternary_weight(weight).values);
}

}  // namespace ingot::quant
