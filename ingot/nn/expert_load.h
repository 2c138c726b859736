#pragma once

#include <vector>

#include "ingot/nn/moe.h"

namespace ingot::nn {

// How many tokens each expert of each layer was given, added up over the micro-batches of a step.
class ExpertLoads {
 public:
  // Adds the choices of one forward, a layer an entry, in order. Nothing on the meta device.
  void add(const std::vector<Routed>& layers, const Tensor& counted = {});
  void clear() { loads_.clear(); }

  const std::vector<std::vector<double>>& loads() const { return loads_; }  // [layer][expert]
  // The busiest expert's load over the mean of its layer, of the worst layer: 1 is perfect, E the
  // worst there is. 0 where nothing was counted.
  double busiest() const;
  // The share of experts of all layers that were given nothing.
  double idle() const;

 private:
  std::vector<std::vector<double>> loads_;
};

// b_e ← b_e + rate · sign(mean load − load_e): a router's correction, after a step, for balance
// without a loss. Wang et al. 2024, arXiv:2408.15664, algorithm 1; DeepSeek-AI 2024,
// arXiv:2412.19437, section 2.1.2. correction: [E] f32
void steer(Tensor& correction, const std::vector<double>& load, double rate);

}  // namespace ingot::nn
