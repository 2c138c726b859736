// RAdam. Liu, Jiang, He, Chen, Liu, Gao, Han 2020, "On the variance of the adaptive learning rate
// and beyond", arXiv:1908.03265, Algorithm 2: while few gradients were seen, and the variance of
// 1/√v̂ is infinite, momentum alone moves the weights; afterwards Adam, shortened by r_t.
//
//   ρ∞ = 2/(1−β2) − 1;  ρ_t = ρ∞ − 2·t·β2ᵗ/(1−β2ᵗ)
//   r_t = √((ρ_t−4)(ρ_t−2)ρ∞ / ((ρ∞−4)(ρ∞−2)ρ_t))
//   p ← p − lr·m̂·r_t·√(1−β2ᵗ) / (√v + ε)  where ρ_t > 5, else p − lr·m̂;  wd·p is added to g
#include "ingot/optim/radam.h"

#include <cmath>

#include "ingot/device/on_device.h"
#include "ingot/kernels/optim.h"
#include "ingot/optim/direction.h"
#include "ingot/optim/moments.h"

namespace ingot {
namespace {

class Radam : public Rule {
 public:
  explicit Radam(const RadamConfig& config) : config_(config) {}

  std::string_view name() const override { return RadamConfig::name; }

  std::vector<Slot> slots(const Weight& p) const override { return moment_slots(p, false); }

  void update(Weight& p, const Tensor& g, TensorList& slots, const Step& step) const override {
    const auto t = static_cast<double>(step.t);
    const double second = 1 - std::pow(config_.beta2, t);
    const double limit = 2 / (1 - config_.beta2) - 1;
    const double seen = limit - 2 * t * (1 - second) / second;
    const bool adapts = seen > 5;
    const double shorter =
        std::sqrt((seen - 4) * (seen - 2) * limit / ((limit - 4) * (limit - 2) * seen));
    const double rate = step.learning_rate / (1 - std::pow(config_.beta1, t));
    const kernels::AdamNumbers numbers{.scale = step.scale,
                                       .l2 = config_.weight_decay * step.decay,
                                       .beta1 = config_.beta1,
                                       .beta2 = config_.beta2,
                                       .rate = adapts ? rate * shorter * std::sqrt(second) : rate,
                                       .root_scale = adapts ? 1.0 : 0.0,
                                       .eps = adapts ? config_.eps : 1};
    on_device(p.full.device(), [&](const auto& on) {
      kernels::adam(on, numbers, g.view(), p.full.mutable_view(), slots[0].mutable_view(),
                    slots[1].mutable_view(), View(), rounded_view(p));
    });
  }

 private:
  RadamConfig config_;
};

}  // namespace

std::unique_ptr<const Rule> make_rule(const RadamConfig& config) {
  return std::make_unique<Radam>(config);
}

}  // namespace ingot
