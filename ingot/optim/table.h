#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "ingot/base/describe.h"
#include "ingot/optim/adam.h"
#include "ingot/optim/adamw.h"
#include "ingot/optim/optimizer.h"
#include "ingot/optim/sgd.h"

namespace ingot {

// The table of rules: one config struct each. Its `name` is what recipes write; make_rule() of it
// builds the rule.
using RuleConfig = std::variant<AdamWConfig, AdamConfig, SgdConfig>;

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
  std::vector<std::string> groups;
  RuleConfig rule = AdamWConfig();

  template <class V>
  void describe(V& v) {
    v("kind", kind, one_of(rule_names()), "update rule; the fields below that it has are its own");
    v("lr", learning_rate, at_least(0), "peak learning rate; the schedule multiplies it");
    v("clip", clip, at_least(0), "largest norm of all gradients together; 0: no clipping");
    v("groups", groups,
      "per-parameter settings, applied in order: \"PATTERN lr=NUMBER decay=on|off|NUMBER\"");
    std::visit([&](auto& config) { config.describe(v); }, rule);
  }
};

// Takes over a rule by name, at its defaults. A name that no rule has changes `kind` alone, which
// the check of its field then refuses with the list of names.
void choose(OptimizerConfig& config, std::string_view kind);

// Throws Error(config) where the numbers contradict each other.
std::unique_ptr<const Rule> make_rule(const OptimizerConfig& config);
Optimizer make_optimizer(const OptimizerConfig& config, const TensorDict& parameters);

}  // namespace ingot
