#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "ingot/base/describe.h"
#include "ingot/optim/adadelta.h"
#include "ingot/optim/adafactor.h"
#include "ingot/optim/adagrad.h"
#include "ingot/optim/adam.h"
#include "ingot/optim/adamax.h"
#include "ingot/optim/adamw.h"
#include "ingot/optim/adamw_8bit.h"
#include "ingot/optim/ademamix.h"
#include "ingot/optim/ema.h"
#include "ingot/optim/lamb.h"
#include "ingot/optim/larc.h"
#include "ingot/optim/lars.h"
#include "ingot/optim/lion.h"
#include "ingot/optim/lookahead.h"
#include "ingot/optim/muon.h"
#include "ingot/optim/nadam.h"
#include "ingot/optim/normuon.h"
#include "ingot/optim/optimizer.h"
#include "ingot/optim/radam.h"
#include "ingot/optim/rmsprop.h"
#include "ingot/optim/rprop.h"
#include "ingot/optim/sam.h"
#include "ingot/optim/schedule_free.h"
#include "ingot/optim/sgd.h"
#include "ingot/optim/shampoo.h"
#include "ingot/optim/soap.h"
#include "ingot/optim/sophia.h"

namespace ingot {

// The table of rules: one config struct each. Its `name` is what recipes write; make_rule() of it
// builds the rule.
using RuleConfig =
    std::variant<AdamWConfig, AdamConfig, SgdConfig, MuonConfig, NormuonConfig, LionConfig,
                 AdemamixConfig, SophiaConfig, SophiaHConfig, SoapConfig, ShampooConfig,
                 ScheduleFreeAdamWConfig, ScheduleFreeSgdConfig, AdafactorConfig, AdamW8bitConfig,
                 LambConfig, LarsConfig, LarcConfig, AdagradConfig, RmspropConfig, AdamaxConfig,
                 NadamConfig, RadamConfig, AdadeltaConfig, RpropConfig>;

// The config of a rule by its name, at its defaults; nothing when no rule has it.
std::optional<RuleConfig> rule_config(std::string_view name);
std::vector<std::string> rule_names();

// What a recipe says about the optimizer. `kind` decides which fields follow it, so a reader first
// calls choose(), then describes:
//   choose_kind(config.optim, settings, "optim.kind");  apply_settings(fields_of(config),
//   settings);
struct OptimizerConfig {
  std::string kind = std::string(AdamWConfig::name);
  double learning_rate = 1e-3;
  double clip = 1;
  double clip_value = 0;
  std::vector<std::string> groups;
  std::string halves = "master";
  EmaConfig ema;
  LookaheadConfig lookahead;
  SamConfig sam;
  RuleConfig rule = AdamWConfig();

  template <class V>
  void describe(V& v) {
    v("kind", kind, one_of(rule_names()), "update rule; the fields below that it has are its own");
    v("lr", learning_rate, at_least(0), "peak learning rate; the schedule multiplies it");
    v("clip", clip, at_least(0), "largest norm of all gradients together; 0: no clipping");
    v("clip_value", clip_value, at_least(0),
      "largest magnitude of each number of the mean gradient, before clip; 0: no clipping");
    v("groups", groups,
      "per-parameter settings, applied in order: \"PATTERN lr=NUMBER decay=on|off|NUMBER "
      "matrix=on|off\"");
    v("halves", halves, one_of({"master", "stochastic"}),
      "half-precision weights: rounded from an f32 master, or (bf16) updated alone and rounded "
      "stochastically");
    std::visit([&](auto& config) { config.describe(v); }, rule);
    v.group("ema", ema, "an average of the weights, which is evaluated and exported");
    v.group("lookahead", lookahead, "slow weights that the rule's run ahead of");
    v.group("sam", sam, "gradients from where the loss is worse, for flatter minima");
  }
};

// Takes over a rule by name, at its defaults. A name that no rule has changes `kind` alone, which
// the check of its field then refuses with the list of names.
void choose(OptimizerConfig& config, std::string_view kind);

// Throws Error(config) where the numbers contradict each other.
std::unique_ptr<const Rule> make_rule(const OptimizerConfig& config);
Optimizer make_optimizer(const OptimizerConfig& config, const TensorDict& parameters,
                         uint64_t seed = 0);

}  // namespace ingot
