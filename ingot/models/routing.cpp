#include "ingot/models/routing.h"

namespace ingot {

void steer_routers(Decoder& model, const nn::ExpertLoads& loads, double rate) {
  size_t next = 0;
  for (const auto& layer : model.layers) {
    if (!layer->moe || next == loads.loads().size()) {
      continue;
    }
    const std::vector<double>& load = loads.loads()[next++];
    if (Tensor& correction = layer->moe->router.correction; correction.defined()) {
      nn::steer(correction, load, rate);
    }
  }
}

}  // namespace ingot
