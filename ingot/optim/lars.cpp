// LARS. You, Gitman, Ginsburg 2017, "Large batch training of convolutional networks",
// arXiv:1708.03888, Algorithm 1:
//
//   local = η·‖p‖ / (‖g‖ + wd·‖p‖);   b ← μ·b + lr·local·(g + wd·p);   p ← p − b
//
// A tensor of zeros, or without gradient, has local = 1: it could not leave 0 otherwise.
#include "ingot/optim/lars.h"

#include <cmath>

#include "ingot/device/on_device.h"
#include "ingot/kernels/optim.h"
#include "ingot/optim/direction.h"

namespace ingot {
namespace {

class Lars : public Rule {
 public:
  explicit Lars(const LarsConfig& config) : config_(config) {}

  std::string_view name() const override { return LarsConfig::name; }

  std::vector<Slot> slots(const Weight& p) const override {
    return {{"momentum", p.full.shape(), p.full.dtype()}};
  }

  void update(Weight& p, const Tensor& g, TensorList& slots, const Step& step) const override {
    const double decay = config_.weight_decay * step.decay;
    const double rate = step.learning_rate * local_rate(p.full, g, step.scale, decay);
    const kernels::SgdNumbers numbers{.scale = rate * step.scale,
                                      .l2 = rate * decay,
                                      .rate = 1,
                                      .hold = config_.momentum,
                                      .take = 1};
    on_device(p.full.device(), [&](const auto& on) {
      kernels::sgd(on, numbers, g.view(), p.full.mutable_view(), slots[0].mutable_view(),
                   rounded_view(p));
    });
  }

 private:
  double local_rate(const Tensor& p, const Tensor& g, double scale, double decay) const {
    if (p.rank() < 2 && !config_.adapt_vectors) {
      return 1;
    }
    const double weights = frobenius_norm(p);
    const double gradient = std::abs(scale) * frobenius_norm(g);
    return weights == 0 || gradient == 0
               ? 1
               : config_.trust_coefficient * weights / (gradient + decay * weights);
  }

  LarsConfig config_;
};

}  // namespace

std::unique_ptr<const Rule> make_rule(const LarsConfig& config) {
  return std::make_unique<Lars>(config);
}

}  // namespace ingot
