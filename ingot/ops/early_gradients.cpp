#include "ingot/ops/early_gradients.h"

#include <memory>
#include <utility>

#include "ingot/device/on_device.h"
#include "ingot/kernels/elementwise.h"
#include "ingot/tensor/copy.h"

namespace ingot {
namespace {

void scale_in_place(Tensor& x, double factor) {
  if (x.defined() && factor != 1) {
    on_device(x.device(), [&](const auto& on) {
      kernels::binary(on, kernels::Binary::mul, x.view(), factor, x.mutable_view());
    });
  }
}

double factor_of(const Tensor& dy) { return dy.device().kind == DeviceKind::meta ? 1 : dy.item(); }

// Kept for another walk of a history that is differentiated again.
TensorList copied(std::string_view op, const TensorList& grads, const TensorList& behind,
                  const Tensor& dy) {
  TensorList all = behind;
  all.push_back(dy);
  TensorList out;
  for (const Tensor& grad : grads) {
    Tensor copy = grad.defined() ? copy_of(grad) : grad;
    scale_in_place(copy, factor_of(dy));
    out.push_back(copy.defined() ? record(op, copy, first_order_only(op, all)) : copy);
  }
  return out;
}

}  // namespace

Formula early_gradients(std::string_view op, const TensorList& xs, const TensorList& grads) {
  const auto kept = std::make_shared<TensorList>(grads);
  TensorList behind;
  for (const Tensor& x : xs) {
    behind.push_back(history_of(x));
  }
  return jointly(xs, [op, kept, behind](const TensorList& dys) {
    if (recording()) {
      return copied(op, *kept, behind, dys[0]);
    }
    TensorList out = std::exchange(*kept, TensorList(kept->size()));
    for (Tensor& grad : out) {
      scale_in_place(grad, factor_of(dys[0]));
    }
    return out;
  });
}

}  // namespace ingot
