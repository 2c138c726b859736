#include "ingot/quant/fake_quantize.h"

#include <cmath>

#include "ingot/autograd/record.h"
#include "ingot/kernels/cpu/parallel.h"
#include "ingot/ops/elementwise.h"
#include "ingot/tensor/copy.h"
#include "ingot/tensor/factories.h"

namespace ingot::quant {

Tensor nearest_integer(const Tensor& x) {
  check(x.dtype() == DType::f32 || x.dtype() == DType::f64, ErrorKind::dtype,
        "nearest_integer: takes f32 or f64: got ", x.dtype());
  Tensor y = empty(x.shape(), x.dtype(), x.device());
  if (x.device().kind != DeviceKind::meta) {
    const Tensor from = dense(detach(x));
    visit_float(x.dtype(), "nearest_integer", [&]<class T>() {
      if constexpr (std::is_same_v<T, float> || std::is_same_v<T, double>) {
        const auto in = from.values<T>();
        const auto out = y.mutable_values<T>();
        kernels::parallel_for(x.elements(), 16384, [&](int64_t begin, int64_t end) {
          for (auto i = static_cast<size_t>(begin); i < static_cast<size_t>(end); ++i) {
            out[i] = std::nearbyint(in[i]);
          }
        });
      }
    });
  }
  return record("nearest_integer", y, wrt(x, [](const Tensor& dy) { return dy; }));
}

Tensor in_place_of(const Tensor& x, const Tensor& values) {
  check(x.shape() == values.shape(), ErrorKind::shape, "in_place_of: shapes differ: x is ",
        x.shape(), ", values ", values.shape());
  return record("in_place_of", detach(values), wrt(x, [](const Tensor& dy) { return dy; }));
}

Tensor fake_quantized(const Tensor& x, double scale, int64_t zero, int64_t low, int64_t high) {
  check(scale > 0 && low < high, ErrorKind::argument,
        "fake_quantized: needs a scale above 0 and low below high: scale is ", scale, ", low ", low,
        ", high ", high);
  const auto shift = static_cast<double>(zero);
  const Tensor code = nearest_integer(x / scale) + shift;
  return (clamp(code, static_cast<double>(low), static_cast<double>(high)) - shift) * scale;
}

}  // namespace ingot::quant
