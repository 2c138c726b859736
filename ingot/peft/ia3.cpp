#include "ingot/peft/ia3.h"

#include "ingot/ops/elementwise.h"
#include "ingot/ops/shape.h"

namespace ingot::peft {

Ia3::Ia3(const nn::Linear& map, Scales scales, DType dtype, Device device,
         std::shared_ptr<const AdapterState> state)
    : Adapter(std::move(state)),
      factors(nn::parameter({scales == Scales::input ? map.in_features() : map.out_features()},
                            dtype, device, 1)),
      scales_(scales) {}

Tensor Ia3::weighted(DType dtype) const {
  const Tensor l = cast(factors, dtype);
  return state().weight == 1 ? l : (l - 1.0) * state().weight + 1.0;
}

Tensor Ia3::before(const Tensor& x) const {
  return scales_ == Scales::input ? x * weighted(x.dtype()) : x;
}

Tensor Ia3::after(const Tensor& x, Tensor y, const nn::Linear&) const {
  return scales_ == Scales::output ? y * weighted(x.dtype()) : y;
}

Adapter::Merged Ia3::merged(const Merged& map) const {
  const Tensor l = weighted(map.weight.dtype());
  if (scales_ == Scales::input) {
    return {map.weight * l, map.bias};
  }
  return {map.weight * unsqueeze(l, 1),
          map.bias.defined() ? map.bias * cast(l, map.bias.dtype()) : map.bias};
}

void Ia3::visit(nn::Visitor& v) { v("ia3_l", factors, nn::Role::gain); }

}  // namespace ingot::peft
