#include "ingot/optim/table.h"

#include <utility>

#include "ingot/optim/alternatives.h"

namespace ingot {

std::optional<RuleConfig> rule_config(std::string_view name) {
  return alternative_named<RuleConfig>(name);
}

std::vector<std::string> rule_names() { return alternative_names<RuleConfig>(); }

void choose(OptimizerConfig& config, std::string_view kind) {
  config.kind = kind;
  config.rule = rule_config(kind).value_or(config.rule);
}

std::unique_ptr<const Rule> make_rule(const OptimizerConfig& config) {
  auto rule = std::visit([](const auto& any) { return make_rule(any); }, config.rule);
  const bool averages = std::holds_alternative<ScheduleFreeAdamWConfig>(config.rule) ||
                        std::holds_alternative<ScheduleFreeSgdConfig>(config.rule);
  check(!averages || (config.ema.decay == 0 && config.lookahead.every == 0), ErrorKind::config,
        "optim: ", rule->name(), " keeps averages of its own: ema.decay is ", config.ema.decay,
        ", lookahead.every is ", config.lookahead.every, "; set both to 0");
  if (config.lookahead.every > 0) {
    rule = with_lookahead(std::move(rule), config.lookahead);
  }
  return config.ema.decay > 0 ? with_ema(std::move(rule), config.ema) : std::move(rule);
}

Optimizer make_optimizer(const OptimizerConfig& config, const TensorDict& parameters,
                         uint64_t seed) {
  const bool alone = config.halves == "stochastic";
  check(!alone || config.sam.rho == 0, ErrorKind::config,
        "optim.halves: SAM moves weights that have masters: halves is stochastic, sam.rho is ",
        config.sam.rho, "; leave one of them out");
  return {parameters, make_rule(config), group_rules(config.groups),
          alone ? Halves::stochastic : Halves::master, seed};
}

}  // namespace ingot
