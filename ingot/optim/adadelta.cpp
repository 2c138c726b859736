// Adadelta. Zeiler 2012, "ADADELTA: an adaptive learning rate method", arXiv:1212.5701, Algorithm
// 1: steps have the unit of the weights, for they are measured in past steps. The paper has lr = 1.
//
//   d = g + wd·p;  v ← ρ·v + (1−ρ)·d²;  r = √(a + ε) / √(v + ε)·d;  a ← ρ·a + (1−ρ)·r²
//   p ← p − lr·r
#include "ingot/optim/adadelta.h"

#include "ingot/device/on_device.h"
#include "ingot/kernels/optim_classic.h"
#include "ingot/optim/direction.h"

namespace ingot {
namespace {

class Adadelta : public Rule {
 public:
  explicit Adadelta(const AdadeltaConfig& config) : config_(config) {}

  std::string_view name() const override { return AdadeltaConfig::name; }

  std::vector<Slot> slots(const Weight& p) const override {
    return {{"v", p.full.shape(), p.full.dtype()}, {"a", p.full.shape(), p.full.dtype()}};
  }

  void update(Weight& p, const Tensor& g, TensorList& slots, const Step& step) const override {
    const kernels::AdadeltaNumbers numbers{.scale = step.scale,
                                           .l2 = config_.weight_decay * step.decay,
                                           .rho = config_.rho,
                                           .eps = config_.eps,
                                           .rate = step.learning_rate};
    on_device(p.full.device(), [&](const auto& on) {
      kernels::adadelta(on, numbers, g.view(), p.full.mutable_view(), slots[0].mutable_view(),
                        slots[1].mutable_view(), rounded_view(p));
    });
  }

 private:
  AdadeltaConfig config_;
};

}  // namespace

std::unique_ptr<const Rule> make_rule(const AdadeltaConfig& config) {
  return std::make_unique<Adadelta>(config);
}

}  // namespace ingot
