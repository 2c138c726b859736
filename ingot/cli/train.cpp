#include <CLI/CLI.hpp>
#include <iostream>

#include "ingot/cli/commands.h"
#include "ingot/cli/encoder_recipe.h"
#include "ingot/cli/encoder_run.h"
#include "ingot/cli/number_checks.h"
#include "ingot/cli/recipe.h"
#include "ingot/cli/run.h"

namespace ingot {

void add_train_command(CLI::App& program) {
  CLI::App* verb = program.add_subcommand("train", "Train a model from a recipe.");
  auto options = std::make_shared<RunOptions>();
  auto show_keys = std::make_shared<bool>(false);
  verb->add_option("recipe", options->recipe, "TOML file; `--keys` lists what it may hold");
  verb->add_option("--set", options->assignments, "KEY=VALUE over the recipe, any number of times");
  verb->add_option("--run", options->folder, "run folder (default: runs/ and the recipe's name)");
  verb->add_flag("--resume", options->resume,
                 "continue the run in that folder from its newest checkpoint");
  verb->add_option("--branch", options->branch,
                   "start from a checkpoint of another run, with another length or schedule: a "
                   "decay from its stable part");
  verb->add_option("--pause-after", options->pause_after,
                   "save and stop after this step of the run; --resume goes on")
      ->check(counting_number());
  verb->add_flag("--json", options->json, "print a JSON summary at the end");
  verb->add_flag("!--no-speed", options->measure_peak,
                 "do not measure the machine's matrix peak at the start; mfu is then null");
  verb->add_flag("--keys", *show_keys, "list every recipe key with its default and meaning");
  verb->footer(
      "A run folder holds recipe.toml, log.jsonl (a line a step), checkpoints/ and, at the end, "
      "model/ in the\n"
      "Hugging Face layout. Ctrl-C saves and stops; so does a second run with --resume go on, bit "
      "for bit.\n"
      "Example: ingot train recipes/kjv.toml --set train.steps=500 --run runs/short");
  verb->callback([options, show_keys] {
    if (*show_keys) {
      std::cout << recipe_help() << "\nWith kind = \"mlm\", \"classify\" or \"embed\":\n"
                << encoder_recipe_help();
      return;
    }
    check(!options->recipe.empty(), ErrorKind::config,
          "train: no recipe given; try `ingot train recipes/kjv.toml`, or --keys for what a recipe "
          "holds");
    const bool encoder = is_encoder_recipe(options->recipe, options->assignments);
    if (!(encoder ? run_encoder_recipe(*options) : run_recipe(*options))) {
      throw CLI::RuntimeError(130);
    }
  });
}

}  // namespace ingot
