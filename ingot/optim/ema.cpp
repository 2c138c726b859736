// Exponential moving average of weights. Polyak and Juditsky 1992, "Acceleration of stochastic
// approximation by averaging", with a fixed memory: after every update s ← d·s + (1−d)·p. Four
// conventions of the start, which for long runs agree:
//
//   constant        s = the first weights; d = decay
//   tf_num_updates  the same; d = min(decay, (1+n)/(10+n)), n = t − 1 (TensorFlow)
//   inverse_gamma   d = min(decay, 1 − (1 + n/γ)^(−power)): the first update copies (ema-pytorch)
//   debiased        s = 0; what is read is s/(1−dᵗ), as Adam's moments (Kingma and Ba 2015)
#include "ingot/optim/ema.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "ingot/autograd/grad_mode.h"
#include "ingot/ops/elementwise.h"
#include "ingot/optim/direction.h"
#include "ingot/tensor/copy.h"

namespace ingot {
namespace {

class Ema : public Rule {
 public:
  Ema(std::unique_ptr<const Rule> inner, const EmaConfig& config)
      : inner_(std::move(inner)), config_(config) {}

  std::string_view name() const override { return inner_->name(); }

  std::vector<Slot> slots(const Weight& p) const override {
    std::vector<Slot> slots = inner_->slots(p);
    slots.push_back({"ema", p.full.shape(), p.full.dtype()});
    return slots;
  }

  void update(Weight& p, const Tensor& g, TensorList& slots, const Step& step) const override {
    Tensor& average = slots.back();
    if (step.t == 1 && config_.form != "debiased") {
      copy_into(average, p.full);
    }
    TensorList inner_slots(slots.begin(), slots.end() - 1);
    inner_->update(p, g, inner_slots, step);
    mix_into(average, ema_decay(config_, step.t), p.full);
  }

  Tensor evaluated(const Weight& p, const TensorList& slots, int64_t t) const override {
    if (t == 0) {
      return p.full;
    }
    const NoGrad quiet;
    const double start = config_.form == "debiased" ? std::pow(config_.decay, t) : 0;
    return start == 0 ? slots.back() : slots.back() / (1 - start);
  }

  int64_t curvature_every() const override { return inner_->curvature_every(); }
  Curvature curvature() const override { return inner_->curvature(); }
  void observe_curvature(const Tensor& estimate, TensorList& slots) const override {
    inner_->observe_curvature(estimate, slots);
  }

 private:
  std::unique_ptr<const Rule> inner_;
  EmaConfig config_;
};

}  // namespace

double ema_decay(const EmaConfig& config, int64_t t) {
  const auto n = static_cast<double>(t - 1);
  if (config.form == "tf_num_updates") {
    return std::min(config.decay, (1 + n) / (10 + n));
  }
  if (config.form == "inverse_gamma") {
    return std::min(config.decay, 1 - std::pow(1 + n / config.inv_gamma, -config.power));
  }
  return config.decay;
}

std::unique_ptr<const Rule> with_ema(std::unique_ptr<const Rule> inner, const EmaConfig& config) {
  return std::make_unique<Ema>(std::move(inner), config);
}

}  // namespace ingot
