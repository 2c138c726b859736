// ingot selftest: what the tests prove, where the program is used.
#include "ingot/cli/selftest.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>

#include "ingot/base/error.h"
#include "ingot/base/json_library.h"
#include "ingot/cli/commands.h"
#include "ingot/cli/selftest_mup.h"

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

void test_mup(bool json) {
  const std::vector<Coordinates> all = coordinate_check({32, 64, 128, 256, 512});
  const std::vector<Growth> growth = growth_of(all);
  if (json) {
    nlohmann::ordered_json out = nlohmann::ordered_json::array();
    for (const Coordinates& one : all) {
      out.push_back(
          {{"mup", one.mup}, {"width", one.width}, {"part", one.part}, {"change", one.change}});
    }
    std::cout << out.dump() << '\n';
  } else {
    fmt::print("how far a part moves in five steps, at widths 32 to 512\n");
    for (const bool mup : {false, true}) {
      for (const Growth& part : growth) {
        fmt::print("{:<6} {:<10}", mup ? "muP" : "usual", part.part);
        for (const Coordinates& one : all) {
          if (one.mup == mup && one.part == part.part) {
            fmt::print(" {:>8.4f}", one.change);
          }
        }
        fmt::print("   x{:.2f}\n", mup ? part.mup : part.usual);
      }
    }
  }
  for (const Growth& part : growth) {
    check(part.mup <= 2, ErrorKind::numeric, "selftest mup: ", part.part,
          " depends on the width: its changes differ ", part.mup, " times, 2 are allowed");
  }
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
  CLI::App* mup = verb->add_subcommand(
      "mup",
      "The coordinate check: under muP what a model does in a few steps does not depend on "
      "its width.");
  mup->footer("Example: ingot selftest mup");
  mup->add_flag("--json", *json, "print JSON");
  mup->callback([json] { test_mup(*json); });
}

}  // namespace ingot
