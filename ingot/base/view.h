#pragma once

#include <cstddef>

#include "ingot/base/dtype.h"
#include "ingot/base/shape.h"

namespace ingot {

// What a kernel sees of a tensor: where it starts, how it is laid out, what its elements are.
// Neither owns anything. ConstView may be read, View may be written.
template <class Void>
struct BasicView {
  Void* data = nullptr;
  Shape shape;
  Strides strides;
  DType dtype = DType::f32;

  template <class T>
  auto* as() const {
    if constexpr (std::is_const_v<Void>) {
      return static_cast<const T*>(data);
    } else {
      return static_cast<T*>(data);
    }
  }
  int64_t rank() const { return shape.rank(); }
  int64_t size(int64_t dim) const { return shape.size(dim); }
  int64_t stride(int64_t dim) const { return strides[shape.index(dim)]; }
  int64_t elements() const { return shape.elements(); }
  bool dense() const { return is_dense(shape, strides); }
  // Elements of all dimensions but the last: the number of rows of a row-wise kernel.
  int64_t rows() const { return rank() == 0 ? 1 : (size(-1) == 0 ? 0 : elements() / size(-1)); }
};

struct View : BasicView<void> {};

struct ConstView : BasicView<const void> {
  ConstView() = default;
  ConstView(const void* start, const Shape& sizes, const Strides& steps, DType type)
      : BasicView<const void>{start, sizes, steps, type} {}
  ConstView(const View& view)  // implicit: what may be written may be read
      : BasicView<const void>{view.data, view.shape, view.strides, view.dtype} {}
};

}  // namespace ingot
