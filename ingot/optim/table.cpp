#include "ingot/optim/table.h"

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
  return std::visit([](const auto& rule) { return make_rule(rule); }, config.rule);
}

Optimizer make_optimizer(const OptimizerConfig& config, const TensorDict& parameters) {
  return {parameters, make_rule(config), group_rules(config.groups)};
}

}  // namespace ingot
