#include "ingot/nn/mlp.h"

#include "ingot/autograd/watch.h"

namespace ingot::nn {
namespace {

Tensor shown(Tensor hidden) {
  if (Watch* watch = watching()) {
    watch->shown("mlp hidden", {hidden});
  }
  return hidden;
}

}  // namespace

Mlp::Mlp(const MlpOptions& o, DType dtype, Device device)
    : up(o.width, o.hidden, o.bias, dtype, device),
      down(o.hidden, o.width, o.bias, dtype, device, Role::residual),
      activation_(o.activation) {
  if (is_gated(activation_)) {
    gate.emplace(o.width, o.hidden, o.bias, dtype, device);
  }
}

Tensor Mlp::operator()(const Tensor& x) const {
  if (!gate) {
    return down(shown(activate(up(x), activation_)));
  }
  const TensorList both = apply_together(x, {&*gate, &up});  // [..., F] each
  return down(shown(activate(both[0], both[1], activation_)));
}

void Mlp::visit(Visitor& v) {
  v("gate", gate);
  v("up", up);
  v("down", down);
}

}  // namespace ingot::nn
