#include "ingot/tensor/copy.h"

#include "ingot/device/on_device.h"
#include "ingot/kernels/copy.h"
#include "ingot/tensor/factories.h"

namespace ingot {
namespace {

void check_same_shape(const char* op, const Tensor& target, const Tensor& source) {
  check(target.shape() == source.shape(), ErrorKind::shape, op, ": shapes differ: target is ",
        target.shape(), ", source is ", source.shape());
}

}  // namespace

Tensor copy_of(const Tensor& x) {
  Tensor y = empty(x.shape(), x.dtype(), x.device());
  on_device(x.device(), [&](const auto& on) { kernels::copy(on, x.view(), y.fresh_view()); });
  return y;
}

Tensor dense(const Tensor& x) { return x.dense() ? x : copy_of(x); }

Tensor converted(const Tensor& x, DType dtype) {
  if (x.dtype() == dtype) {
    return x;
  }
  Tensor y = empty(x.shape(), dtype, x.device());
  on_device(x.device(), [&](const auto& on) { kernels::copy(on, x.view(), y.fresh_view()); });
  return y;
}

Tensor moved(const Tensor& x, Device device) {
  if (x.device() == device) {
    return x;
  }
  check(device.kind == DeviceKind::meta, ErrorKind::device, "moved: a tensor on ", x.device(),
        " has no values to bring to ", device);
  return empty(x.shape(), x.dtype(), device);
}

void copy_into(Tensor& target, const Tensor& source) {
  check_same_shape("copy_into", target, source);
  on_device(target.device(),
            [&](const auto& on) { kernels::copy(on, source.view(), target.mutable_view()); });
}

void add_into(Tensor& target, const Tensor& source) {
  check_same_shape("add_into", target, source);
  on_device(target.device(),
            [&](const auto& on) { kernels::accumulate(on, source.view(), target.mutable_view()); });
}

void fill(Tensor& target, double value) {
  on_device(target.device(),
            [&](const auto& on) { kernels::fill(on, value, target.mutable_view()); });
}

}  // namespace ingot
