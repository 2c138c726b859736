#pragma once

#include <span>

#include "ingot/base/philox.h"
#include "ingot/tensor/tensor.h"

namespace ingot {

Tensor empty(const Shape& shape, DType dtype, Device device = cpu_device);  // contents undefined
Tensor zeros(const Shape& shape, DType dtype, Device device = cpu_device);
Tensor full(const Shape& shape, double value, DType dtype, Device device = cpu_device);
Tensor scalar(double value, DType dtype, Device device = cpu_device);  // shape []

// 0, 1, …, count − 1.
Tensor arange(int64_t count, DType dtype, Device device = cpu_device);

// Independent draws, a function of the key and the element's index alone (so of nothing else:
// neither thread count nor layout).
Tensor uniform(const Shape& shape, double low, double high, const RandomKey& key, DType dtype,
               Device device = cpu_device);
Tensor normal(const Shape& shape, double mean, double deviation, const RandomKey& key, DType dtype,
              Device device = cpu_device);

// A copy of `values` in a tensor of `shape`. Throws Error(shape) if the counts differ.
template <class T>
Tensor tensor_of(std::span<const T> values, const Shape& shape) {
  Tensor out = empty(shape, dtype_of<T>);
  check(static_cast<int64_t>(values.size()) == out.elements(), ErrorKind::shape,
        "tensor_of: ", values.size(), " values for shape ", shape);
  std::copy(values.begin(), values.end(), static_cast<T*>(out.fresh_view().data));
  return out;
}
template <class T>
Tensor tensor_of(const std::vector<T>& values, const Shape& shape) {
  return tensor_of(std::span<const T>(values), shape);
}

}  // namespace ingot
