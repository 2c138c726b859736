// AdamW with moments of 8 bits. Dettmers, Lewis, Shleifer, Zettlemoyer 2022, "8-bit optimizers via
// block-wise quantization", arXiv:2110.02861, section 2: between updates each moment is a code of
// the dynamic map (kernels/optim_8bit.h) times the largest magnitude of its block. The update
// itself, from the moments before they are rounded, is
//
//   p ← (1 − lr·wd)·(p − lr·m̂ / (√v̂ + ε))
//
// Small tensors keep full moments, as in bitsandbytes.
#include "ingot/optim/adamw_8bit.h"

#include <cmath>

#include "ingot/device/on_device.h"
#include "ingot/kernels/optim_8bit.h"
#include "ingot/optim/direction.h"
#include "ingot/optim/moments.h"

namespace ingot {
namespace {

class AdamW8bit : public Rule {
 public:
  explicit AdamW8bit(const AdamW8bitConfig& config) : config_(config) {}

  std::string_view name() const override { return AdamW8bitConfig::name; }

  std::vector<Slot> slots(const Weight& p) const override {
    const int64_t count = p.full.elements();
    if (count < config_.min_elements) {
      return moment_slots(p, false);
    }
    const int64_t blocks = (count + config_.block - 1) / config_.block;
    return {{"m", {count}, DType::u8, kernels::signed_zero_code},
            {"m_scale", {blocks}, p.full.dtype()},
            {"v", {count}, DType::u8},
            {"v_scale", {blocks}, p.full.dtype()}};
  }

  void update(Weight& p, const Tensor& g, TensorList& slots, const Step& step) const override {
    const double keep = 1 - step.learning_rate * config_.weight_decay * step.decay;
    if (p.full.elements() < config_.min_elements) {
      Step decayed = step;
      decayed.learning_rate *= keep;
      moment_step(p, g, slots, decayed,
                  {.beta1 = config_.beta1, .beta2 = config_.beta2, .eps = config_.eps}, 0, keep);
      return;
    }
    const auto t = static_cast<double>(step.t);
    const double root = std::sqrt(1 - std::pow(config_.beta2, t));
    const kernels::AdamNumbers numbers{
        .scale = step.scale,
        .beta1 = config_.beta1,
        .beta2 = config_.beta2,
        .keep = keep,
        .rate = keep * step.learning_rate / (1 - std::pow(config_.beta1, t)),
        .root_scale = 1 / root,
        .eps = config_.eps};
    on_device(p.full.device(), [&](const auto& on) {
      kernels::adam_8bit(on, numbers, config_.block, g.view(), p.full.mutable_view(),
                         {slots[0].mutable_view(), slots[1].mutable_view()},
                         {slots[2].mutable_view(), slots[3].mutable_view()}, rounded_view(p));
    });
  }

 private:
  AdamW8bitConfig config_;
};

}  // namespace

std::unique_ptr<const Rule> make_rule(const AdamW8bitConfig& config) {
  return std::make_unique<AdamW8bit>(config);
}

}  // namespace ingot
