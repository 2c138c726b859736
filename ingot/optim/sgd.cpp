// Stochastic gradient descent: Robbins and Monro 1951. Momentum: Polyak 1964. Nesterov's form as in
// Sutskever, Martens, Dahl, Hinton 2013, "On the importance of initialization and momentum in deep
// learning", in the variables of the look-ahead point, with the learning rate outside the buffer.
//
//   d = g + wd·p                      (L2 decay; decoupled: p ← (1 − lr·wd)·p instead)
//   b ← μ·b + (1 − dampening)·d       (b = d at the first step)
//   p ← p − lr·b                      (Nesterov: p ← p − lr·(d + μ·b))
#include "ingot/optim/sgd.h"

#include "ingot/device/on_device.h"
#include "ingot/kernels/optim.h"

namespace ingot {
namespace {

class Sgd : public Rule {
 public:
  explicit Sgd(const SgdConfig& config) : config_(config) {}

  std::string_view name() const override { return SgdConfig::name; }

  std::vector<Slot> slots(const Weight& p) const override {
    if (config_.momentum == 0) {
      return {};
    }
    return {{"momentum", p.full.shape(), p.full.dtype()}};
  }

  void update(Weight& p, const Tensor& g, TensorList& slots, const Step& step) const override {
    const double decay = config_.weight_decay * step.decay;
    const bool first = step.t == 1;
    const kernels::SgdNumbers numbers{
        .scale = step.scale,
        .l2 = config_.decoupled ? 0 : decay,
        .keep = config_.decoupled ? 1 - step.learning_rate * decay : 1,
        .rate = step.learning_rate,
        .momentum = config_.momentum,
        .hold = first ? 0 : config_.momentum,
        .take = first ? 1 : 1 - config_.dampening,
        .nesterov = config_.nesterov};
    on_device(p.full.device(), [&](const auto& on) {
      kernels::sgd(on, numbers, g.view(), p.full.mutable_view(),
                   slots.empty() ? View() : slots[0].mutable_view(),
                   p.rounded.defined() ? p.rounded.mutable_view() : View());
    });
  }

 private:
  SgdConfig config_;
};

}  // namespace

std::unique_ptr<const Rule> make_rule(const SgdConfig& config) {
  check(!config.nesterov || (config.momentum > 0 && config.dampening == 0), ErrorKind::config,
        "sgd: nesterov needs momentum above 0 and no dampening: momentum is ", config.momentum,
        ", dampening is ", config.dampening);
  return std::make_unique<Sgd>(config);
}

}  // namespace ingot
