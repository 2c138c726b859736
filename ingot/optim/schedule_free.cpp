// Schedule-free optimization. Defazio et al. 2024, "The road less scheduled", arXiv:2405.15682,
// equations 3 to 5 and Algorithm 1. Gradients are taken at y, the parameter; x, the average, is
// what is evaluated and published; z is the base:
//
//   z ← z − lr·wd·y − lr·g / (√v̂ + ε);   v ← β2·v + (1−β2)·g²   (SGD: z ← z − lr·(g + wd·y))
//   x ← (1−c)·x + c·z;   c = w_t / Σ w,  w_t = t^r · (largest rate so far)^power
//   y ← β·x + (1−β)·z
//
// x is not kept: it is (y − (1−β)·z) / β. The warm-up is the schedule's.
#include "ingot/optim/schedule_free.h"

#include <algorithm>
#include <cmath>

#include "ingot/autograd/grad_mode.h"
#include "ingot/device/on_device.h"
#include "ingot/kernels/optim.h"
#include "ingot/ops/elementwise.h"
#include "ingot/optim/direction.h"
#include "ingot/tensor/copy.h"

namespace ingot {
namespace {

// "z" and "sums": the sum of weights and the largest rate so far.
std::vector<Slot> base_slots(const Weight& p) {
  return {{"z", p.full.shape(), p.full.dtype()}, {"sums", {2}, DType::f64}};
}

// Adds the weight of this update; returns its share c of all.
double share_of_update(Tensor& sums, const Step& step, double r, double power) {
  if (sums.device().kind == DeviceKind::meta) {
    return 1;
  }
  auto values = sums.mutable_values<double>();
  values[1] = std::max(values[1], step.learning_rate);
  const double weight = std::pow(static_cast<double>(step.t), r) * std::pow(values[1], power);
  values[0] += weight;
  return values[0] > 0 ? weight / values[0] : 1;
}

Tensor averaged(const Weight& p, const Tensor& z, double beta) {
  const NoGrad quiet;
  return (p.full - (1 - beta) * z) / beta;
}

class ScheduleFreeAdamW : public Rule {
 public:
  explicit ScheduleFreeAdamW(const ScheduleFreeAdamWConfig& config) : config_(config) {}

  std::string_view name() const override { return ScheduleFreeAdamWConfig::name; }

  std::vector<Slot> slots(const Weight& p) const override {
    std::vector<Slot> slots = base_slots(p);
    slots.push_back({"v", p.full.shape(), p.full.dtype()});
    if (config_.inner_momentum > 0) {
      slots.push_back({"m", p.full.shape(), p.full.dtype()});
    }
    return slots;
  }

  void update(Weight& p, const Tensor& g, TensorList& slots, const Step& step) const override {
    const auto t = static_cast<double>(step.t);
    if (step.t == 1) {
      copy_into(slots[0], p.full);
    }
    const kernels::ScheduleFreeNumbers numbers{
        .scale = step.scale,
        .beta = config_.beta,
        .beta2 = config_.beta2,
        .inner = config_.inner_momentum,
        .correct = 1 / (1 - std::pow(config_.inner_momentum, t)),
        .root_scale = 1 / std::sqrt(1 - std::pow(config_.beta2, t)),
        .eps = config_.eps,
        .decay = step.learning_rate * config_.weight_decay * step.decay,
        .decay_at_z = config_.decay_at_z,
        .rate = step.learning_rate,
        .mix = share_of_update(slots[1], step, config_.r, config_.weight_lr_power)};
    on_device(p.full.device(), [&](const auto& on) {
      kernels::schedule_free(on, numbers, g.view(), p.full.mutable_view(), slots[0].mutable_view(),
                             slots[2].mutable_view(),
                             slots.size() > 3 ? slots[3].mutable_view() : View(), rounded_view(p));
    });
  }

  Tensor evaluated(const Weight& p, const TensorList& slots, int64_t t) const override {
    return t == 0 ? p.full : averaged(p, slots[0], config_.beta);
  }

 private:
  ScheduleFreeAdamWConfig config_;
};

class ScheduleFreeSgd : public Rule {
 public:
  explicit ScheduleFreeSgd(const ScheduleFreeSgdConfig& config) : config_(config) {}

  std::string_view name() const override { return ScheduleFreeSgdConfig::name; }

  std::vector<Slot> slots(const Weight& p) const override { return base_slots(p); }

  void update(Weight& p, const Tensor& g, TensorList& slots, const Step& step) const override {
    if (step.t == 1) {
      copy_into(slots[0], p.full);
    }
    const kernels::ScheduleFreeNumbers numbers{
        .scale = step.scale,
        .beta = config_.beta,
        .decay = step.learning_rate * config_.weight_decay * step.decay,
        .rate = step.learning_rate,
        .mix = share_of_update(slots[1], step, config_.r, config_.weight_lr_power)};
    on_device(p.full.device(), [&](const auto& on) {
      kernels::schedule_free(on, numbers, g.view(), p.full.mutable_view(), slots[0].mutable_view(),
                             View(), View(), rounded_view(p));
    });
  }

  Tensor evaluated(const Weight& p, const TensorList& slots, int64_t t) const override {
    return t == 0 ? p.full : averaged(p, slots[0], config_.beta);
  }

 private:
  ScheduleFreeSgdConfig config_;
};

}  // namespace

std::unique_ptr<const Rule> make_rule(const ScheduleFreeAdamWConfig& config) {
  return std::make_unique<ScheduleFreeAdamW>(config);
}

std::unique_ptr<const Rule> make_rule(const ScheduleFreeSgdConfig& config) {
  return std::make_unique<ScheduleFreeSgd>(config);
}

}  // namespace ingot
