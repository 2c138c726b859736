#include "ingot/tensor/factories.h"

#include "ingot/device/on_device.h"
#include "ingot/kernels/copy.h"

namespace ingot {

Tensor empty(const Shape& shape, DType dtype, Device device) {
  for (const int64_t size : shape) {
    check(size >= 0, ErrorKind::shape, "empty: a size is negative: ", shape);
  }
  auto storage = std::make_shared<Storage>(shape.elements() * size_of(dtype), device);
  return {std::move(storage), shape, dense_strides(shape), 0, dtype};
}

Tensor zeros(const Shape& shape, DType dtype, Device device) {
  return full(shape, 0, dtype, device);
}

Tensor full(const Shape& shape, double value, DType dtype, Device device) {
  Tensor y = empty(shape, dtype, device);
  on_device(device, [&](const auto& on) { kernels::fill(on, value, y.fresh_view()); });
  return y;
}

Tensor scalar(double value, DType dtype, Device device) { return full({}, value, dtype, device); }

Tensor arange(int64_t count, DType dtype, Device device) {
  std::vector<int64_t> values(static_cast<size_t>(device.kind == DeviceKind::meta ? 0 : count));
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<int64_t>(i);
  }
  Tensor y = empty({count}, dtype, device);
  on_device(device, [&](const auto& on) {
    kernels::copy(on, ConstView(values.data(), {count}, {1}, DType::i64), y.fresh_view());
  });
  return y;
}

Tensor uniform(const Shape& shape, double low, double high, const RandomKey& key, DType dtype,
               Device device) {
  Tensor y = empty(shape, dtype, device);
  on_device(device,
            [&](const auto& on) { kernels::fill_uniform(on, low, high, key, y.fresh_view()); });
  return y;
}

Tensor normal(const Shape& shape, double mean, double deviation, const RandomKey& key, DType dtype,
              Device device) {
  Tensor y = empty(shape, dtype, device);
  on_device(device, [&](const auto& on) {
    kernels::fill_normal(on, mean, deviation, key, y.fresh_view());
  });
  return y;
}

}  // namespace ingot
