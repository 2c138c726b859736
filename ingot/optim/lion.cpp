// Lion. Chen et al. 2023, "Symbolic discovery of optimization algorithms", arXiv:2302.06675,
// Algorithm 2:
//
//   p ← (1 − lr·wd)·p − lr·sign(β1·m + (1−β1)·g)
//   m ← β2·m + (1−β2)·g
//
// Every coordinate moves by lr, whatever its gradient's size; sign(0) = 0.
#include "ingot/optim/lion.h"

#include "ingot/device/on_device.h"
#include "ingot/kernels/optim.h"
#include "ingot/optim/direction.h"

namespace ingot {
namespace {

class Lion : public Rule {
 public:
  explicit Lion(const LionConfig& config) : config_(config) {}

  std::string_view name() const override { return LionConfig::name; }

  std::vector<Slot> slots(const Weight& p) const override {
    return {{"m", p.full.shape(), p.full.dtype()}};
  }

  void update(Weight& p, const Tensor& g, TensorList& slots, const Step& step) const override {
    const kernels::LionNumbers numbers{
        .scale = step.scale,
        .beta1 = config_.beta1,
        .beta2 = config_.beta2,
        .keep = 1 - step.learning_rate * config_.weight_decay * step.decay,
        .rate = step.learning_rate};
    on_device(p.full.device(), [&](const auto& on) {
      kernels::lion(on, numbers, g.view(), p.full.mutable_view(), slots[0].mutable_view(),
                    rounded_view(p));
    });
  }

 private:
  LionConfig config_;
};

}  // namespace

std::unique_ptr<const Rule> make_rule(const LionConfig& config) {
  return std::make_unique<Lion>(config);
}

}  // namespace ingot
