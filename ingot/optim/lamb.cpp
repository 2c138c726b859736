// LAMB. You et al. 2019, "Large batch optimization for deep learning: training BERT in 76 minutes",
// arXiv:1904.00962, Algorithm 2:
//
//   r = m̂ / (√v̂ + ε) + wd·p;   p ← p − lr·φ(‖p‖)/‖r‖·r
//
// φ is the identity, or min(·, max_weight_norm). Where either norm is 0 their ratio is 1. Versions
// of the paper differ in the bias correction.
#include "ingot/optim/lamb.h"

#include <algorithm>
#include <cmath>

#include "ingot/device/on_device.h"
#include "ingot/kernels/optim.h"
#include "ingot/optim/direction.h"
#include "ingot/optim/moments.h"
#include "ingot/tensor/factories.h"

namespace ingot {
namespace {

class Lamb : public Rule {
 public:
  explicit Lamb(const LambConfig& config) : config_(config) {}

  std::string_view name() const override { return LambConfig::name; }

  std::vector<Slot> slots(const Weight& p) const override { return moment_slots(p, false); }

  void update(Weight& p, const Tensor& g, TensorList& slots, const Step& step) const override {
    const auto t = static_cast<double>(step.t);
    const bool correct = config_.bias_correction;
    const kernels::AdamDirection numbers{
        .scale = step.scale,
        .beta1 = config_.beta1,
        .beta2 = config_.beta2,
        .correct = correct ? 1 / (1 - std::pow(config_.beta1, t)) : 1,
        .root_scale = correct ? 1 / std::sqrt(1 - std::pow(config_.beta2, t)) : 1,
        .eps = config_.eps,
        .decay = config_.weight_decay * step.decay};
    Tensor r = empty(g.shape(), g.dtype(), g.device());
    on_device(p.full.device(), [&](const auto& on) {
      kernels::adam_direction(on, numbers, g.view(), p.full.mutable_view(), slots[0].mutable_view(),
                              slots[1].mutable_view(), r.fresh_view());
    });
    move_along(p, r, step.learning_rate * trust(frobenius_norm(p.full), frobenius_norm(r)), 1);
  }

 private:
  double trust(double weights, double direction) const {
    const double bound = config_.max_weight_norm;
    const double bounded = bound > 0 ? std::min(weights, bound) : weights;
    return bounded == 0 || direction == 0 ? 1 : bounded / direction;
  }

  LambConfig config_;
};

}  // namespace

std::unique_ptr<const Rule> make_rule(const LambConfig& config) {
  return std::make_unique<Lamb>(config);
}

}  // namespace ingot
