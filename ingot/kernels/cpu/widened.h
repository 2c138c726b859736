#pragma once

#include <cstddef>

#include "ingot/base/view.h"
#include "ingot/device/allocator.h"
#include "ingot/kernels/copy.h"

namespace ingot::kernels {

// Dense f32 memory for as long as it lives: where an operation computes when the processor lacks
// the half types.
class Widened {
 public:
  explicit Widened(const Shape& shape)
      : bytes_(shape.elements() * size_of(DType::f32)),
        view_{{allocator(cpu_device).allocate(bytes_, Purpose::workspace), shape,
               dense_strides(shape), DType::f32}} {}
  // With the elements of x.
  Widened(const Cpu& on, const ConstView& x) : Widened(x.shape) { copy(on, x, view_); }
  ~Widened() {
    allocator(cpu_device).free(static_cast<std::byte*>(view_.data), bytes_, Purpose::workspace);
  }
  Widened(const Widened&) = delete;
  Widened& operator=(const Widened&) = delete;

  const View& view() const { return view_; }

 private:
  int64_t bytes_;
  View view_;
};

}  // namespace ingot::kernels
