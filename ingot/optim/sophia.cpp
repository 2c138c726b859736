// Sophia. Liu, Li, Hall, Liang, Ma 2023, "Sophia: a scalable stochastic second-order optimizer for
// language model pre-training", arXiv:2305.14342, Algorithm 3:
//
//   m ← β1·m + (1−β1)·g
//   h ← β2·h + (1−β2)·ĥ                        before updates 1, 1 + every, …
//   p ← (1 − lr·wd)·p − lr·clip(m / max(γ·h, ε), −1, 1)
//
// ĥ estimates the diagonal of the Hessian. Sophia-G takes Algorithm 2's, B·ĝ², where ĝ is the
// gradient of the mean loss over B labels drawn from the model itself; Sophia-H Algorithm 1's,
// u ⊙ ∇²L·u with u of the standard normal distribution (train/curvature.h says how either is made).
// No coordinate moves further than lr; where the curvature is negative or small, it is a step of
// the sign.
#include "ingot/optim/sophia.h"

#include "ingot/device/on_device.h"
#include "ingot/kernels/optim.h"
#include "ingot/optim/direction.h"

namespace ingot {
namespace {

class Sophia : public Rule {
 public:
  Sophia(const SophiaConfig& config, std::string_view name, Curvature curvature)
      : config_(config), name_(name), curvature_(curvature) {}

  std::string_view name() const override { return name_; }

  std::vector<Slot> slots(const Weight& p) const override {
    return {{"m", p.full.shape(), p.full.dtype()}, {"h", p.full.shape(), p.full.dtype()}};
  }

  void update(Weight& p, const Tensor& g, TensorList& slots, const Step& step) const override {
    const kernels::SophiaNumbers numbers{
        .scale = step.scale,
        .beta1 = config_.beta1,
        .gamma = config_.gamma,
        .eps = config_.eps,
        .add_eps = config_.form == "code",
        .keep = 1 - step.learning_rate * config_.weight_decay * step.decay,
        .rate = step.learning_rate};
    on_device(p.full.device(), [&](const auto& on) {
      kernels::sophia(on, numbers, g.view(), p.full.mutable_view(), slots[0].mutable_view(),
                      slots[1].mutable_view(), rounded_view(p));
    });
  }

  int64_t curvature_every() const override { return config_.every; }
  Curvature curvature() const override { return curvature_; }

  void observe_curvature(const Tensor& estimate, TensorList& slots) const override {
    mix_into(slots[1], config_.beta2, estimate);
  }

 private:
  SophiaConfig config_;
  std::string_view name_;
  Curvature curvature_;
};

}  // namespace

std::unique_ptr<const Rule> make_rule(const SophiaConfig& config) {
  return std::make_unique<Sophia>(config, SophiaConfig::name, Curvature::drawn_labels);
}

std::unique_ptr<const Rule> make_rule(const SophiaHConfig& config) {
  return std::make_unique<Sophia>(config, SophiaHConfig::name, Curvature::hutchinson);
}

}  // namespace ingot
