#pragma once

#include <memory>
#include <vector>

#include "ingot/autograd/record.h"
#include "ingot/nn/initialise.h"
#include "ingot/nn/transformer.h"
#include "ingot/tensor/factories.h"
#include "tests/support/op_case.h"

namespace ingot::testing {

// Two transformer layers of a few hundred weights: what adapters are put on.
class TinyLayers : public nn::Module {
 public:
  explicit TinyLayers(DType dtype = DType::f64, Device device = cpu_device) {
    nn::TransformerOptions o;
    o.attention = {.width = 8, .heads = 2, .kv_heads = 2, .head_dim = 4};
    o.mlp = {.width = 8, .hidden = 12};
    for (int i = 0; i < 2; ++i) {
      layers.push_back(std::make_unique<nn::TransformerBlock>(o, dtype, device));
    }
    if (device.kind != DeviceKind::meta) {
      nn::initialise(*this, {"normal", 0.3}, 3);
    }
  }

  Tensor operator()(Tensor x) const {
    for (const auto& layer : layers) {
      x = (*layer)(x, {});
    }
    return x;
  }
  void visit(nn::Visitor& v) override { v("layers", layers); }

  std::vector<std::unique_ptr<nn::TransformerBlock>> layers;
};

inline Tensor tiny_input() { return random_tensor({2, 5, 8}, 11); }

}  // namespace ingot::testing
