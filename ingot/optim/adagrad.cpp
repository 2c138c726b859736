// Adagrad. Duchi, Hazan, Singer 2011, "Adaptive subgradient methods for online learning and
// stochastic optimization", JMLR 12, figure 1 with a diagonal matrix; lr_decay as in PyTorch.
//
//   d = g + wd·p;   s ← s + d²;   p ← p − lr / (1 + (t−1)·lr_decay) · d / (√s + ε)
#include "ingot/optim/adagrad.h"

#include "ingot/device/on_device.h"
#include "ingot/kernels/optim.h"
#include "ingot/optim/direction.h"

namespace ingot {
namespace {

class Adagrad : public Rule {
 public:
  explicit Adagrad(const AdagradConfig& config) : config_(config) {}

  std::string_view name() const override { return AdagradConfig::name; }

  std::vector<Slot> slots(const Weight& p) const override {
    return {{"s", p.full.shape(), p.full.dtype(), config_.initial_accumulator_value}};
  }

  void update(Weight& p, const Tensor& g, TensorList& slots, const Step& step) const override {
    const double decay = config_.weight_decay * step.decay;
    const double past = static_cast<double>(step.t - 1);
    const kernels::AdagradNumbers numbers{
        .scale = step.scale,
        .l2 = config_.decoupled ? 0 : decay,
        .keep = config_.decoupled ? 1 - step.learning_rate * decay : 1,
        .rate = step.learning_rate / (1 + past * config_.lr_decay),
        .eps = config_.eps};
    on_device(p.full.device(), [&](const auto& on) {
      kernels::adagrad(on, numbers, g.view(), p.full.mutable_view(), slots[0].mutable_view(),
                       rounded_view(p));
    });
  }

 private:
  AdagradConfig config_;
};

}  // namespace

std::unique_ptr<const Rule> make_rule(const AdagradConfig& config) {
  return std::make_unique<Adagrad>(config);
}

}  // namespace ingot
