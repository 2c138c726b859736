// NAdam. Dozat 2016, "Incorporating Nesterov momentum into Adam", ICLR workshop; the rising first
// decay as in PyTorch.
//
//   μ_t = β1·(1 − 0.96^(t·ψ) / 2);  Π_t = μ_1 ⋯ μ_t
//   d = g + wd·p;  m ← β1·m + (1−β1)·d;  v ← β2·v + (1−β2)·d²
//   p ← p − lr·((1−μ_t)/(1−Π_t)·d + μ_{t+1}/(1−Π_t·μ_{t+1})·m) / (√(v/(1−β2ᵗ)) + ε)
//
// PyTorch to 1.13 divides by 1−Π_t·μ_t·μ_{t+1}: form = "torch_1.13".
#include "ingot/optim/nadam.h"

#include <cmath>

#include "ingot/device/on_device.h"
#include "ingot/kernels/optim_classic.h"
#include "ingot/optim/direction.h"

namespace ingot {
namespace {

class Nadam : public Rule {
 public:
  explicit Nadam(const NadamConfig& config) : config_(config) {}

  std::string_view name() const override { return NadamConfig::name; }

  // "decays" holds Π_t.
  std::vector<Slot> slots(const Weight& p) const override {
    return {{"m", p.full.shape(), p.full.dtype()},
            {"v", p.full.shape(), p.full.dtype()},
            {"decays", {1}, DType::f64, 1}};
  }

  void update(Weight& p, const Tensor& g, TensorList& slots, const Step& step) const override {
    const double now = decay_at(step.t);
    const double next = decay_at(step.t + 1);
    const double product = times(slots[2], now);
    const double ahead = product * next * (config_.form == "paper" ? 1 : now);
    const double second = 1 - std::pow(config_.beta2, static_cast<double>(step.t));
    const kernels::NadamNumbers numbers{
        .scale = step.scale,
        .l2 = config_.weight_decay * step.decay,
        .beta1 = config_.beta1,
        .beta2 = config_.beta2,
        .from_gradient = step.learning_rate * (1 - now) / (1 - product),
        .from_moment = step.learning_rate * next / (1 - ahead),
        .root_scale = 1 / std::sqrt(second),
        .eps = config_.eps};
    on_device(p.full.device(), [&](const auto& on) {
      kernels::nadam(on, numbers, g.view(), p.full.mutable_view(), slots[0].mutable_view(),
                     slots[1].mutable_view(), rounded_view(p));
    });
  }

 private:
  double decay_at(int64_t t) const {
    return config_.beta1 *
           (1 - std::pow(0.96, static_cast<double>(t) * config_.momentum_decay) / 2);
  }

  // Π ← Π·decay; returns it.
  static double times(Tensor& product, double decay) {
    if (product.device().kind == DeviceKind::meta) {
      return decay;
    }
    return product.mutable_values<double>()[0] *= decay;
  }

  NadamConfig config_;
};

}  // namespace

std::unique_ptr<const Rule> make_rule(const NadamConfig& config) {
  return std::make_unique<Nadam>(config);
}

}  // namespace ingot
