// LARC: the local rate of You, Gitman, Ginsburg 2017, arXiv:1708.03888, as a factor of the gradient
// in front of plain SGD with momentum, as in NVIDIA's apex:
//
//   a = η·‖p‖ / (‖g‖ + wd·‖p‖ + ε);   with `bounded` a ← min(a/lr, 1)
//   d = a·(g + wd·p);   b ← μ·b + d  (b = d at the first step);   p ← p − lr·b
//
// A tensor of zeros, or without gradient, has a = 1.
#include "ingot/optim/larc.h"

#include <algorithm>
#include <cmath>

#include "ingot/device/on_device.h"
#include "ingot/kernels/optim.h"
#include "ingot/optim/direction.h"

namespace ingot {
namespace {

class Larc : public Rule {
 public:
  explicit Larc(const LarcConfig& config) : config_(config) {}

  std::string_view name() const override { return LarcConfig::name; }

  std::vector<Slot> slots(const Weight& p) const override {
    return {{"momentum", p.full.shape(), p.full.dtype()}};
  }

  void update(Weight& p, const Tensor& g, TensorList& slots, const Step& step) const override {
    const double decay = config_.weight_decay * step.decay;
    const double factor = local_factor(p.full, g, step, decay);
    const kernels::SgdNumbers numbers{.scale = factor * step.scale,
                                      .l2 = factor * decay,
                                      .rate = step.learning_rate,
                                      .hold = step.t == 1 ? 0 : config_.momentum,
                                      .take = 1};
    on_device(p.full.device(), [&](const auto& on) {
      kernels::sgd(on, numbers, g.view(), p.full.mutable_view(), slots[0].mutable_view(),
                   rounded_view(p));
    });
  }

 private:
  double local_factor(const Tensor& p, const Tensor& g, const Step& step, double decay) const {
    if (p.rank() < 2 && !config_.adapt_vectors) {
      return 1;
    }
    const double weights = frobenius_norm(p);
    const double gradient = std::abs(step.scale) * frobenius_norm(g);
    if (weights == 0 || gradient == 0) {
      return 1;
    }
    const double local =
        config_.trust_coefficient * weights / (gradient + decay * weights + config_.eps);
    return config_.bounded ? (local < step.learning_rate ? local / step.learning_rate : 1) : local;
  }

  LarcConfig config_;
};

}  // namespace

std::unique_ptr<const Rule> make_rule(const LarcConfig& config) {
  return std::make_unique<Larc>(config);
}

}  // namespace ingot
