#include "ingot/nn/initialise.h"

#include <cmath>

#include "ingot/nn/block.h"
#include "ingot/tensor/copy.h"
#include "ingot/tensor/factories.h"

namespace ingot::nn {
namespace {

class BlockCounter : public Visitor {
 public:
  int64_t blocks = 0;

 protected:
  void on_parameter(const std::string& /*path*/, Tensor& /*parameter*/, Role /*role*/) override {}
  void on_module(const std::string& /*path*/, Module& module) override {
    blocks += dynamic_cast<Block*>(&module) != nullptr ? 1 : 0;
  }
};

int64_t blocks_in(Module& module) {
  BlockCounter counter;
  module.visit(counter);
  return counter.blocks;
}

Tensor initial_matrix(const Slot& slot, const InitConfig& c, int64_t blocks, const RandomKey& key) {
  const Shape& shape = slot.tensor().shape();
  const Device device = slot.tensor().device();
  const auto fan_in = static_cast<double>(shape.size(-1));
  const auto fans = fan_in + static_cast<double>(shape.size(0));
  if (c.scheme == "xavier") {
    const double bound = std::sqrt(6 / fans);
    return uniform(shape, -bound, bound, key, DType::f32, device);
  }
  double deviation = c.deviation;
  if (c.scheme == "xavier_normal") {
    deviation = std::sqrt(2 / fans);
  } else if (c.scheme == "kaiming") {
    deviation = std::sqrt(2 / fan_in);
  } else if (c.scheme == "gpt2" && slot.role == Role::residual && blocks > 0) {
    deviation /= std::sqrt(2 * static_cast<double>(blocks));
  }
  return normal(shape, 0, deviation, key, DType::f32, device);
}

Tensor initial_value(const Slot& slot, const InitConfig& c, int64_t blocks, uint64_t seed) {
  const Tensor& parameter = slot.tensor();
  const RandomKey key{seed, 0, site_named(slot.path)};
  switch (slot.role) {
    case Role::gain: return full(parameter.shape(), 1, DType::f32, parameter.device());
    case Role::gain_difference:
    case Role::bias: return zeros(parameter.shape(), DType::f32, parameter.device());
    case Role::embedding:
      return normal(parameter.shape(), 0, c.deviation, key, DType::f32, parameter.device());
    case Role::matrix:
    case Role::residual: break;
  }
  return initial_matrix(slot, c, blocks, key);
}

}  // namespace

TensorDict initial_values(const Module& module, const InitConfig& config, uint64_t seed) {
  TensorDict out;
  // visit() hands out members for writing; reading them through it changes nothing.
  auto& visited = const_cast<Module&>(module);
  const int64_t blocks = blocks_in(visited);
  for (const Slot& slot : visited.slots()) {
    out.add(slot.path, initial_value(slot, config, blocks, seed));
  }
  return out;
}

void initialise(Module& module, const InitConfig& config, uint64_t seed) {
  const int64_t blocks = blocks_in(module);
  for (const Slot& slot : module.slots()) {
    copy_into(*slot.places.front(), initial_value(slot, config, blocks, seed));
  }
}

}  // namespace ingot::nn
