// ingot selftest: what the tests prove, where the program is used.
#include "ingot/cli/selftest.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <nlohmann/json.hpp>

#include "ingot/base/error.h"
#include "ingot/cli/commands.h"

namespace ingot {
namespace {

void print_table(const std::vector<OptimizerRun>& runs) {
  fmt::print("{:<22} {:<11} {:>8} {:>6} {:>11} {:>8}\n", "optimizer", "problem", "lr", "steps",
             "loss", "target");
  for (const OptimizerRun& run : runs) {
    fmt::print("{:<22} {:<11} {:>8.3g} {:>6} {:>11.3g} {:>8.3g}{}\n", run.optimizer, run.problem,
               run.learning_rate, run.steps, run.loss, run.target, run.reached() ? "" : "  MISSED");
  }
}

void print_json(const std::vector<OptimizerRun>& runs) {
  nlohmann::ordered_json out = nlohmann::ordered_json::array();
  for (const OptimizerRun& run : runs) {
    out.push_back({{"optimizer", run.optimizer},
                   {"problem", run.problem},
                   {"learning_rate", run.learning_rate},
                   {"steps", run.steps},
                   {"loss", run.loss},
                   {"target", run.target},
                   {"reached", run.reached()}});
  }
  std::cout << out.dump() << '\n';
}

void test_optimizers(bool json) {
  const std::vector<OptimizerRun> runs = selftest_optim();
  json ? print_json(runs) : print_table(runs);
  const auto missed = std::count_if(runs.begin(), runs.end(),
                                    [](const OptimizerRun& run) { return !run.reached(); });
  check(missed == 0, ErrorKind::numeric, "selftest optim: ", missed, " of ", runs.size(),
        " runs end above their target; the table marks them");
}

}  // namespace

void add_selftest_command(CLI::App& program) {
  CLI::App* verb =
      program.add_subcommand("selftest", "Checks of the built program that take seconds.");
  verb->require_subcommand(1);
  verb->footer("Example: ingot selftest optim");
  CLI::App* optim = verb->add_subcommand(
      "optim", "Every optimizer on four small problems, beside the loss it must reach.");
  optim->footer("Example: ingot selftest optim");
  auto json = std::make_shared<bool>(false);
  optim->add_flag("--json", *json, "print JSON");
  optim->callback([json] { test_optimizers(*json); });
}

}  // namespace ingot
