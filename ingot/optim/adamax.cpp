// AdaMax. Kingma and Ba 2015, "Adam: a method for stochastic optimization", arXiv:1412.6980,
// Algorithm 2: Adam with the largest of the decayed magnitudes in the place of the root mean
// square; eps stands inside the maximum, as in PyTorch.
//
//   d = g + wd·p;  m ← β1·m + (1−β1)·d;  u ← max(β2·u, |d| + ε);  p ← p − lr/(1−β1ᵗ)·m / u
#include "ingot/optim/adamax.h"

#include <cmath>

#include "ingot/device/on_device.h"
#include "ingot/kernels/optim_classic.h"
#include "ingot/optim/direction.h"

namespace ingot {
namespace {

class Adamax : public Rule {
 public:
  explicit Adamax(const AdamaxConfig& config) : config_(config) {}

  std::string_view name() const override { return AdamaxConfig::name; }

  std::vector<Slot> slots(const Weight& p) const override {
    return {{"m", p.full.shape(), p.full.dtype()}, {"u", p.full.shape(), p.full.dtype()}};
  }

  void update(Weight& p, const Tensor& g, TensorList& slots, const Step& step) const override {
    const double first = 1 - std::pow(config_.beta1, static_cast<double>(step.t));
    const kernels::AdamaxNumbers numbers{.scale = step.scale,
                                         .l2 = config_.weight_decay * step.decay,
                                         .beta1 = config_.beta1,
                                         .beta2 = config_.beta2,
                                         .eps = config_.eps,
                                         .rate = step.learning_rate / first};
    on_device(p.full.device(), [&](const auto& on) {
      kernels::adamax(on, numbers, g.view(), p.full.mutable_view(), slots[0].mutable_view(),
                      slots[1].mutable_view(), rounded_view(p));
    });
  }

 private:
  AdamaxConfig config_;
};

}  // namespace

std::unique_ptr<const Rule> make_rule(const AdamaxConfig& config) {
  return std::make_unique<Adamax>(config);
}

}  // namespace ingot
