// Rprop. Riedmiller and Braun 1993, "A direct adaptive method for faster backpropagation learning:
// the RPROP algorithm", IEEE International Conference on Neural Networks, in the form without
// weight backtracking (as PyTorch has it). Each number has a step of its own; only the signs of
// gradients matter, so they must come from all of the data.
//
//   s ← clamp(s·(grow where g·g' > 0, shrink where g·g' < 0), least, most), g' the gradient before
//   g ← 0 where g·g' < 0;  p ← p − lr·s·sign(g);  s starts at 1
#include "ingot/optim/rprop.h"

#include "ingot/device/on_device.h"
#include "ingot/kernels/optim_classic.h"
#include "ingot/optim/direction.h"

namespace ingot {
namespace {

class Rprop : public Rule {
 public:
  explicit Rprop(const RpropConfig& config) : config_(config) {}

  std::string_view name() const override { return RpropConfig::name; }

  std::vector<Slot> slots(const Weight& p) const override {
    return {{"before", p.full.shape(), p.full.dtype()}, {"s", p.full.shape(), p.full.dtype(), 1}};
  }

  void update(Weight& p, const Tensor& g, TensorList& slots, const Step& step) const override {
    const kernels::RpropNumbers numbers{.scale = step.scale,
                                        .shrink = config_.shrink,
                                        .grow = config_.grow,
                                        .least = config_.least,
                                        .most = config_.most,
                                        .rate = step.learning_rate};
    on_device(p.full.device(), [&](const auto& on) {
      kernels::rprop(on, numbers, g.view(), p.full.mutable_view(), slots[0].mutable_view(),
                     slots[1].mutable_view(), rounded_view(p));
    });
  }

 private:
  RpropConfig config_;
};

}  // namespace

std::unique_ptr<const Rule> make_rule(const RpropConfig& config) {
  return std::make_unique<Rprop>(config);
}

}  // namespace ingot
