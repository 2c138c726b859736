// AdamW. Loshchilov and Hutter 2019, "Decoupled weight decay regularization", arXiv:1711.05101,
// Algorithm 2, with the decay scaled by the learning rate as in PyTorch:
//   p ← (1 − lr·wd)·p, then Adam's step with the plain gradient.
#include "ingot/optim/adamw.h"

#include "ingot/optim/moments.h"

namespace ingot {
namespace {

class AdamW : public Rule {
 public:
  explicit AdamW(const AdamWConfig& config) : config_(config) {}

  std::string_view name() const override { return AdamWConfig::name; }

  std::vector<Slot> slots(const Weight& p) const override {
    return moment_slots(p, config_.amsgrad);
  }

  void update(Weight& p, const Tensor& g, TensorList& slots, const Step& step) const override {
    const MomentNumbers numbers{config_.beta1,   config_.beta2, config_.eps,
                                config_.amsgrad, false,         config_.bias_correction};
    const double decay = config_.weight_decay * step.decay;
    moment_step(p, g, slots, step, numbers, 0, 1 - step.learning_rate * decay);
  }

 private:
  AdamWConfig config_;
};

}  // namespace

std::unique_ptr<const Rule> make_rule(const AdamWConfig& config) {
  return std::make_unique<AdamW>(config);
}

}  // namespace ingot
