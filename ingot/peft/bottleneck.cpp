#include "ingot/peft/bottleneck.h"

#include <cmath>

#include "ingot/ops/elementwise.h"
#include "ingot/ops/linear.h"
#include "ingot/tensor/copy.h"
#include "ingot/tensor/factories.h"

namespace ingot::peft {

Bottleneck::Bottleneck(const nn::Linear& map, int64_t width, const AdapterSeed& seed, DType dtype,
                       Device device, std::shared_ptr<const AdapterState> state)
    : Adapter(std::move(state)) {
  const int64_t out = map.out_features();
  const double bound = 1 / std::sqrt(static_cast<double>(out));
  const PurposeScope scope(Purpose::parameters);
  down =
      converted(uniform({width, out}, -bound, bound, seed.key("down"), DType::f32, device), dtype);
  down_bias = nn::parameter({width}, dtype, device);
  up = nn::parameter({out, width}, dtype, device);
  up_bias = nn::parameter({out}, dtype, device);
}

Tensor Bottleneck::after(const Tensor&, Tensor y, const nn::Linear&) const {
  const Tensor hidden = gelu(linear(y, down, down_bias));
  return y + linear(hidden, up, up_bias) * state().weight;
}

Adapter::Merged Bottleneck::merged(const Merged&) const {
  throw Error(
      ErrorKind::config,
      "bottleneck adapters: they are no linear maps and cannot be merged into weights; keep "
      "the adapter beside its base");
}

void Bottleneck::visit(nn::Visitor& v) {
  v("down.weight", down, nn::Role::matrix);
  v("down.bias", down_bias, nn::Role::bias);
  v("up.weight", up, nn::Role::matrix);
  v("up.bias", up_bias, nn::Role::bias);
}

}  // namespace ingot::peft
