#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "ingot/base/device.h"
#include "ingot/base/dtype.h"
#include "ingot/base/shape.h"
#include "ingot/base/view.h"
#include "ingot/device/storage.h"

namespace ingot {

struct Node;  // one recorded operation; autograd/node.h defines it

// An n-dimensional array: a shared Storage seen through a shape and strides. A value: copying is
// cheap and shares the elements. Functions on tensors are free functions (ops/); this class only
// knows its layout.
class Tensor {
 public:
  Tensor() = default;  // undefined: no storage
  Tensor(std::shared_ptr<Storage> storage, Shape shape, Strides strides, int64_t offset,
         DType dtype);

  bool defined() const { return storage_ != nullptr; }
  const Shape& shape() const { return shape_; }
  const Strides& strides() const { return strides_; }
  int64_t size(int64_t dim) const { return shape_.size(dim); }
  int64_t rank() const { return shape_.rank(); }
  int64_t elements() const { return shape_.elements(); }
  int64_t bytes() const { return elements() * size_of(dtype_); }
  int64_t offset() const { return offset_; }  // in elements, from the storage's start
  DType dtype() const { return dtype_; }
  Device device() const { return storage_->device(); }
  bool dense() const { return is_dense(shape_, strides_); }

  ConstView view() const;
  View mutable_view();  // for in-place writes: bumps the storage's version
  View fresh_view();    // for filling a tensor that was just made: leaves the version alone

  // The elements of a dense tensor. Throws Error(dtype) if T is not its type, Error(shape) if not
  // dense.
  template <class T>
  std::span<const T> values() const {
    check_values(dtype_of<T>);
    return {static_cast<const T*>(view().data), static_cast<size_t>(elements())};
  }
  template <class T>
  std::span<T> mutable_values() {
    check_values(dtype_of<T>);
    return {static_cast<T*>(mutable_view().data), static_cast<size_t>(elements())};
  }
  // The only element, converted to double. Throws Error(shape) unless there is exactly one.
  double item() const;

  // The same storage seen otherwise, without history.
  Tensor aliased(Shape shape, Strides strides, int64_t offset) const;

  const std::shared_ptr<Storage>& storage() const { return storage_; }

  // Autograd's pointer to the operation (and which of its results) that made this tensor.
  const std::shared_ptr<Node>& node() const { return node_; }
  uint32_t node_output() const { return node_output_; }
  void set_node(std::shared_ptr<Node> node, uint32_t output);

 private:
  void check_values(DType wanted) const;
  int64_t bytes_touched() const;

  std::shared_ptr<Storage> storage_;
  Shape shape_;
  Strides strides_;
  int64_t offset_ = 0;
  DType dtype_ = DType::f32;
  uint32_t node_output_ = 0;
  std::shared_ptr<Node> node_;
};

using TensorList = std::vector<Tensor>;

}  // namespace ingot
