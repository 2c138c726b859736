#include "ingot/cli/data.h"

#include <CLI/CLI.hpp>

#include "ingot/cli/commands.h"

namespace ingot {

void add_data_command(CLI::App& program) {
  CLI::App* verb = program.add_subcommand(
      "data", "Look at training data, count it, divide it, and turn it into tokens.");
  verb->require_subcommand(1);
  add_data_show(*verb);
  add_data_stats(*verb);
  add_data_tokenize(*verb);
  add_data_split(*verb);
  add_data_convert(*verb);
}

}  // namespace ingot
