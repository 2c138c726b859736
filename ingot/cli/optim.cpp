// ingot optim list: what optimizers there are and what their state costs.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <iostream>

#include "ingot/autograd/record.h"
#include "ingot/base/json_library.h"
#include "ingot/cli/commands.h"
#include "ingot/optim/table.h"
#include "ingot/tensor/factories.h"

namespace ingot {
namespace {

struct Row {
  std::string name, paper, use;
  double matrix = 0;  // bytes of state for each number of a 1024 x 1024 matrix in f32
  double vector = 0;  // of a vector, or a table of tokens
};

double bytes_of(const RuleConfig& config, const char* name, const Shape& shape) {
  TensorDict parameters;
  Tensor p = zeros(shape, DType::f32, Device{DeviceKind::meta});
  parameters.add(name, require_grad(p));
  return Optimizer(parameters, std::visit([](const auto& any) { return make_rule(any); }, config))
      .state_bytes_per_parameter();
}

Row row_of(const std::string& name) {
  const RuleConfig config = rule_config(name).value();
  Row row;
  row.name = name;
  std::visit(
      [&](const auto& any) {
        row.paper = any.paper;
        row.use = any.use;
      },
      config);
  row.matrix = bytes_of(config, "layer.weight", {1024, 1024});
  row.vector = bytes_of(config, "embedding.weight", {65536, 16});
  return row;
}

void list_rules(bool json) {
  nlohmann::ordered_json out = nlohmann::ordered_json::array();
  if (!json) {
    fmt::print("{:<20} {:>7} {:>7}  {:<50} {}\n", "kind", "matrix", "tokens", "paper", "when");
  }
  for (const std::string& name : rule_names()) {
    const Row row = row_of(name);
    if (json) {
      out.push_back({{"kind", row.name},
                     {"state_bytes_per_matrix_parameter", row.matrix},
                     {"state_bytes_per_embedding_parameter", row.vector},
                     {"paper", row.paper},
                     {"use", row.use}});
    } else {
      fmt::print("{:<20} {:>7.3g} {:>7.3g}  {:<50} {}\n", row.name, row.matrix, row.vector,
                 row.paper, row.use);
    }
  }
  if (json) {
    std::cout << out.dump() << '\n';
    return;
  }
  fmt::print(
      "\nBytes of state for each number of a 1024 x 1024 matrix and of a table of 65536 tokens x "
      "16,"
      "\nat the rule's defaults. bf16 weights add 4 for their f32 masters, optim.ema.decay 4,\n"
      "optim.lookahead.every 4. `ingot train --keys` lists their settings.\n");
}

}  // namespace

void add_optim_command(CLI::App& program) {
  CLI::App* verb = program.add_subcommand("optim", "About optimizers.");
  verb->require_subcommand(1);
  verb->footer("Example: ingot optim list");
  CLI::App* all = verb->add_subcommand(
      "list", "Every optimizer: paper, bytes of state per parameter, when to use it.");
  all->footer("Example: ingot optim list");
  auto json = std::make_shared<bool>(false);
  all->add_flag("--json", *json, "print JSON");
  all->callback([json] { list_rules(*json); });
}

}  // namespace ingot
