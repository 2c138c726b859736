// AdEMAMix. Pagliardini, Ablin, Grangier 2024, "The AdEMAMix optimizer: better, faster, older",
// arXiv:2409.03137, Algorithm 1 and appendix A.1:
//
//   m1 ← β1·m1 + (1−β1)·g;   m2 ← β3·m2 + (1−β3)·g;   v ← β2·v + (1−β2)·g²
//   p ← (1 − lr·wd)·p − lr·(m1/(1−β1ᵗ) + α·m2) / (√v/√(1−β2ᵗ) + ε)
#include "ingot/optim/ademamix.h"

#include <cmath>

#include "ingot/device/on_device.h"
#include "ingot/kernels/optim.h"
#include "ingot/optim/direction.h"

namespace ingot {
namespace {

// Updates after which half of an average of this decay is new, and the decay of a half-life.
double half_life(double beta) { return std::log(0.5) / std::log(beta + 1e-8) - 1; }
double decay_of(double updates) { return std::pow(0.5, 1 / (updates + 1)); }

double share(int64_t t, int64_t warmup) {
  return static_cast<double>(t) / static_cast<double>(warmup);
}

class Ademamix : public Rule {
 public:
  explicit Ademamix(const AdemamixConfig& config) : config_(config) {}

  std::string_view name() const override { return AdemamixConfig::name; }

  std::vector<Slot> slots(const Weight& p) const override {
    const Shape& shape = p.full.shape();
    return {{"m", shape, p.full.dtype()},
            {"slow", shape, p.full.dtype()},
            {"v", shape, p.full.dtype()}};
  }

  void update(Weight& p, const Tensor& g, TensorList& slots, const Step& step) const override {
    const auto t = static_cast<double>(step.t);
    const kernels::AdemamixNumbers numbers{
        .scale = step.scale,
        .beta1 = config_.beta1,
        .beta2 = config_.beta2,
        .beta3 = beta3_at(config_, step.t),
        .alpha = alpha_at(config_, step.t),
        .correct = 1 / (1 - std::pow(config_.beta1, t)),
        .root_scale = 1 / std::sqrt(1 - std::pow(config_.beta2, t)),
        .eps = config_.eps,
        .keep = 1 - step.learning_rate * config_.weight_decay * step.decay,
        .rate = step.learning_rate};
    on_device(p.full.device(), [&](const auto& on) {
      kernels::ademamix(on, numbers, g.view(), p.full.mutable_view(), slots[0].mutable_view(),
                        slots[1].mutable_view(), slots[2].mutable_view(), rounded_view(p));
    });
  }

 private:
  AdemamixConfig config_;
};

}  // namespace

double alpha_at(const AdemamixConfig& config, int64_t t) {
  return t < config.alpha_warmup ? config.alpha * share(t, config.alpha_warmup) : config.alpha;
}

double beta3_at(const AdemamixConfig& config, int64_t t) {
  if (t >= config.beta3_warmup) {
    return config.beta3;
  }
  const double from = half_life(config.beta1);
  const double to = half_life(config.beta3);
  return decay_of(from + share(t, config.beta3_warmup) * (to - from));
}

std::unique_ptr<const Rule> make_rule(const AdemamixConfig& config) {
  return std::make_unique<Ademamix>(config);
}

}  // namespace ingot
