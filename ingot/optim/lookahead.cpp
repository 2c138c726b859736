// Lookahead. Zhang, Lucas, Hinton, Ba 2019, "Lookahead optimizer: k steps forward, 1 step back",
// arXiv:1907.08610, Algorithm 1 and section 3.2. Around any rule, after every k of its updates:
//
//   slow ← slow + α·(fast − slow);   fast ← slow
//
// Momentum (the slots "m" and "momentum") is kept, set to 0, or pulled back as the weights are:
// towards its own value after the synchronisation before, 0 at first.
#include "ingot/optim/lookahead.h"

#include <utility>

#include "ingot/optim/direction.h"
#include "ingot/tensor/copy.h"

namespace ingot {
namespace {

bool is_momentum(const Slot& slot) { return slot.name == "m" || slot.name == "momentum"; }

class Lookahead : public Rule {
 public:
  Lookahead(std::unique_ptr<const Rule> inner, const LookaheadConfig& config)
      : inner_(std::move(inner)), config_(config) {}

  std::string_view name() const override { return inner_->name(); }

  std::vector<Slot> slots(const Weight& p) const override {
    std::vector<Slot> slots = inner_->slots(p);
    const size_t own = slots.size();
    slots.push_back({"slow", p.full.shape(), p.full.dtype()});
    for (size_t i = 0; config_.momentum == "pullback" && i < own; ++i) {
      if (is_momentum(slots[i])) {
        slots.push_back({"slow_momentum", slots[i].shape, slots[i].dtype});
        break;  // no rule has two
      }
    }
    return slots;
  }

  void update(Weight& p, const Tensor& g, TensorList& slots, const Step& step) const override {
    const std::vector<Slot> own = inner_->slots(p);
    Tensor& slow = slots[own.size()];
    if (step.t == 1) {
      copy_into(slow, p.full);
    }
    TensorList inner_slots(slots.begin(), slots.begin() + static_cast<std::ptrdiff_t>(own.size()));
    inner_->update(p, g, inner_slots, step);
    if (step.t % config_.every != 0) {
      return;
    }
    mix_into(slow, 1 - config_.alpha, p.full);
    copy_into(p.full, slow);
    if (p.rounded.defined()) {
      copy_into(p.rounded, p.full);
    }
    for (size_t i = 0; i < own.size(); ++i) {
      if (is_momentum(own[i])) {
        pull_back(slots[i], slots.back());
      }
    }
  }

  int64_t curvature_every() const override { return inner_->curvature_every(); }
  Curvature curvature() const override { return inner_->curvature(); }
  void observe_curvature(const Tensor& estimate, TensorList& slots) const override {
    inner_->observe_curvature(estimate, slots);
  }

 private:
  void pull_back(Tensor& momentum, Tensor& last) const {
    if (config_.momentum == "reset") {
      fill(momentum, 0);
    } else if (config_.momentum == "pullback") {
      mix_into(last, 1 - config_.alpha, momentum);
      copy_into(momentum, last);
    }
  }

  std::unique_ptr<const Rule> inner_;
  LookaheadConfig config_;
};

}  // namespace

std::unique_ptr<const Rule> with_lookahead(std::unique_ptr<const Rule> inner,
                                           const LookaheadConfig& config) {
  return std::make_unique<Lookahead>(std::move(inner), config);
}

}  // namespace ingot
