#include "ingot/tensor/tensor.h"

#include <algorithm>
#include <utility>

#include "ingot/device/profile.h"

namespace ingot {

Tensor::Tensor(std::shared_ptr<Storage> storage, Shape shape, Strides strides, int64_t offset,
               DType dtype)
    : storage_(std::move(storage)),
      shape_(shape),
      strides_(strides),
      offset_(offset),
      dtype_(dtype) {}

ConstView Tensor::view() const {
  check(defined(), ErrorKind::internal, "tensor: undefined");
  count_bytes(bytes_touched());
  std::byte* data = storage_->data();
  return {data == nullptr ? nullptr : data + offset_ * size_of(dtype_), shape_, strides_, dtype_};
}

View Tensor::fresh_view() {
  check(defined(), ErrorKind::internal, "tensor: undefined");
  check(storage_->writable(), ErrorKind::argument,
        "tensor: its memory is a read-only mapping; copy it first");
  count_bytes(bytes_touched());
  std::byte* data = storage_->data();
  return {{data == nullptr ? nullptr : data + offset_ * size_of(dtype_), shape_, strides_, dtype_}};
}

View Tensor::mutable_view() {
  const View view = fresh_view();
  count_bytes(bytes_touched());  // read as well as written
  storage_->bump();
  return view;
}

// Elements that repeat (stride 0) lie in the memory once.
int64_t Tensor::bytes_touched() const { return std::min(bytes(), storage_->bytes()); }

double Tensor::item() const {
  check(elements() == 1, ErrorKind::shape, "item: takes a tensor of one element: got shape ",
        shape_);
  check(device().kind != DeviceKind::meta, ErrorKind::device,
        "item: the meta device has no values");
  const void* data = view().data;
  return visit_any(dtype_,
                   [&]<class T>() { return static_cast<double>(*static_cast<const T*>(data)); });
}

Tensor Tensor::aliased(Shape shape, Strides strides, int64_t offset) const {
  return {storage_, shape, strides, offset, dtype_};
}

void Tensor::set_node(std::shared_ptr<Node> node, uint32_t output) {
  node_ = std::move(node);
  node_output_ = output;
}

void Tensor::check_values(DType wanted) const {
  check(dtype_ == wanted, ErrorKind::dtype, "values: the tensor holds ", dtype_, ", asked for ",
        wanted);
  check(dense(), ErrorKind::shape, "values: the tensor of shape ", shape_, " and strides ",
        strides_, " is not dense; call contiguous first");
  check(device().kind != DeviceKind::meta, ErrorKind::device, "values: the meta device has none");
}

}  // namespace ingot
