// RMSprop. Tieleman and Hinton 2012, "Neural networks for machine learning", lecture 6.5; centered:
// Graves 2013, "Generating sequences with recurrent neural networks", arXiv:1308.0850, equations
// 38 to 45.
//
//   d = g + wd·p;   v ← α·v + (1−α)·d²;   a ← α·a + (1−α)·d  (centered, 0 otherwise)
//   r = d / (√(v − a²) + ε), or d / √(v − a² + ε)
//   b ← μ·b + r;   p ← p − lr·b
#include "ingot/optim/rmsprop.h"

#include "ingot/device/on_device.h"
#include "ingot/kernels/optim.h"
#include "ingot/optim/direction.h"

namespace ingot {
namespace {

class Rmsprop : public Rule {
 public:
  explicit Rmsprop(const RmspropConfig& config) : config_(config) {}

  std::string_view name() const override { return RmspropConfig::name; }

  std::vector<Slot> slots(const Weight& p) const override {
    std::vector<Slot> slots = {{"v", p.full.shape(), p.full.dtype()}};
    if (config_.centered) {
      slots.push_back({"average", p.full.shape(), p.full.dtype()});
    }
    if (config_.momentum > 0) {
      slots.push_back({"momentum", p.full.shape(), p.full.dtype()});
    }
    return slots;
  }

  void update(Weight& p, const Tensor& g, TensorList& slots, const Step& step) const override {
    const double decay = config_.weight_decay * step.decay;
    const kernels::RmspropNumbers numbers{
        .scale = step.scale,
        .l2 = config_.decoupled ? 0 : decay,
        .keep = config_.decoupled ? 1 - step.learning_rate * decay : 1,
        .alpha = config_.alpha,
        .eps = config_.eps,
        .momentum = config_.momentum,
        .rate = step.learning_rate,
        .eps_inside = config_.eps_inside_sqrt};
    on_device(p.full.device(), [&](const auto& on) {
      kernels::rmsprop(on, numbers, g.view(), p.full.mutable_view(), slots[0].mutable_view(),
                       config_.centered ? slots[1].mutable_view() : View(),
                       config_.momentum > 0 ? slots.back().mutable_view() : View(),
                       rounded_view(p));
    });
  }

 private:
  RmspropConfig config_;
};

}  // namespace

std::unique_ptr<const Rule> make_rule(const RmspropConfig& config) {
  return std::make_unique<Rmsprop>(config);
}

}  // namespace ingot
