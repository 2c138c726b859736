#pragma once

#include <memory>

#include "ingot/base/describe.h"
#include "ingot/optim/rule.h"

namespace ingot {

struct ScheduleFreeAdamWConfig {
  static constexpr std::string_view name = "schedule_free_adamw";
  static constexpr std::string_view paper = "Defazio et al. 2024, 2405.15682";
  static constexpr std::string_view use = "runs without a set end; give it a constant schedule";
  double beta = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  double weight_decay = 0.1;
  double r = 0;
  double weight_lr_power = 2;
  bool decay_at_z = false;
  double inner_momentum = 0;

  template <class V>
  void describe(V& v) {
    v("beta", beta, in(0.01, 1),
      "where gradients are taken: share of the average x, the rest of z");
    v("beta2", beta2, half_open(0, 1), "decay of the second moment");
    v("eps", eps, at_least(0), "added to the root of the second moment");
    v("weight_decay", weight_decay, at_least(0), "times the learning rate: share lost per step");
    v("r", r, at_least(0), "the average weighs update t by t^r");
    v("weight_lr_power", weight_lr_power, at_least(0), "and by this power of the largest rate");
    v("decay_at_z", decay_at_z, "decay the base z instead of the point y of the gradient");
    v("inner_momentum", inner_momentum, half_open(0, 1),
      "decay of an average of gradients; 0: none");
  }
};

struct ScheduleFreeSgdConfig {
  static constexpr std::string_view name = "schedule_free_sgd";
  static constexpr std::string_view paper = "Defazio et al. 2024, 2405.15682";
  static constexpr std::string_view use = "runs without a set end, with SGD";
  double beta = 0.9;
  double weight_decay = 0;
  double r = 0;
  double weight_lr_power = 2;

  template <class V>
  void describe(V& v) {
    v("beta", beta, in(0.01, 1),
      "where gradients are taken: share of the average x, the rest of z");
    v("weight_decay", weight_decay, at_least(0), "times the learning rate: share lost per step");
    v("r", r, at_least(0), "the average weighs update t by t^r");
    v("weight_lr_power", weight_lr_power, at_least(0), "and by this power of the largest rate");
  }
};

std::unique_ptr<const Rule> make_rule(const ScheduleFreeAdamWConfig& config);
std::unique_ptr<const Rule> make_rule(const ScheduleFreeSgdConfig& config);

}  // namespace ingot
