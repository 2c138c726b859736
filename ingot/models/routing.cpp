#include "ingot/models/routing.h"

namespace ingot {

void steer_routers(Decoder& model, const nn::ExpertLoads& loads, double rate) {
  size_t next = 0;
  const auto steer_layer = [&](nn::TransformerBlock& layer) {
    if (!layer.moe || next == loads.loads().size()) {
      return;
    }
    const std::vector<double>& load = loads.loads()[next++];
    if (Tensor& correction = layer.moe->router.correction; correction.defined()) {
      nn::steer(correction, load, rate);
    }
  };
  for (const auto& layer : model.layers) {
    steer_layer(*layer);
  }
  for (const auto& head : model.mtp) {
    steer_layer(head->layer);
  }
}

}  // namespace ingot
