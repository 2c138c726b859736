// Adam. Kingma and Ba 2015, "Adam: a method for stochastic optimization", arXiv:1412.6980,
// Algorithm 1; eps_hat is the reordering at the end of its section 2. AMSGrad: Reddi, Kale, Kumar
// 2018, arXiv:1904.09237 (of v, as in PyTorch, not of v̂). Weight decay is the L2 form: wd·p is
// added to the gradient and passes through the moments.
#include "ingot/optim/adam.h"

#include "ingot/optim/moments.h"

namespace ingot {
namespace {

class Adam : public Rule {
 public:
  explicit Adam(const AdamConfig& config) : config_(config) {}

  std::string_view name() const override { return AdamConfig::name; }

  std::vector<Slot> slots(const Weight& p) const override {
    return moment_slots(p, config_.amsgrad);
  }

  void update(Weight& p, const Tensor& g, TensorList& slots, const Step& step) const override {
    const MomentNumbers numbers{config_.beta1,   config_.beta2,   config_.eps,
                                config_.amsgrad, config_.eps_hat, config_.bias_correction};
    moment_step(p, g, slots, step, numbers, config_.weight_decay * step.decay, 1);
  }

 private:
  AdamConfig config_;
};

}  // namespace

std::unique_ptr<const Rule> make_rule(const AdamConfig& config) {
  return std::make_unique<Adam>(config);
}

}  // namespace ingot
