#include "ingot/cli/recipe.h"

#include <algorithm>
#include <array>

#include "ingot/base/config_help.h"
#include "ingot/base/config_toml.h"
#include "ingot/optim/alternatives.h"

namespace ingot {
namespace {

constexpr std::array<std::string_view, 10> changeable = {
    "evaluate.every", "evaluate.batches",   "evaluate.batch", "checkpoint.every", "checkpoint.keep",
    "sample.prompt",  "sample.temperature", "sample.tokens",  "train.recompute",  "data.files",
};

// The kinds of optimizer and schedule decide which other keys there are, so they are read first.
Recipe assemble(std::vector<Setting> settings, const std::vector<std::string>& assignments) {
  Recipe recipe;
  choose_kind(recipe.optim, settings, "optim.kind");
  choose_kind(recipe.schedule, settings, "schedule.kind");
  for (const std::string& assignment : assignments) {
    for (const std::string_view kind : {"optim.kind=", "schedule.kind="}) {
      if (assignment.starts_with(kind)) {
        const std::vector<Setting> chosen = {{std::string(kind.substr(0, kind.size() - 1)),
                                              Value(assignment.substr(kind.size())), "--set",
                                              false}};
        choose_kind(recipe.optim, chosen, "optim.kind");
        choose_kind(recipe.schedule, chosen, "schedule.kind");
      }
    }
  }
  const Fields fields = fields_of(recipe);
  for (const std::string& assignment : assignments) {
    settings.push_back(command_line_setting(fields, assignment));
  }
  apply_settings(fields, settings);
  check_recipe(recipe);
  return recipe;
}

}  // namespace

Recipe read_recipe(const std::filesystem::path& path, const std::vector<std::string>& assignments) {
  return assemble(toml_file_settings(path), assignments);
}

Recipe parse_recipe(const std::string& toml, const std::string& name,
                    const std::vector<std::string>& assignments) {
  return assemble(toml_settings(toml, name), assignments);
}

void check_recipe(const Recipe& recipe) {
  check_schedule(recipe.schedule.schedule, recipe.train.steps);
  complete(recipe.model);
  check(recipe.train.batch % recipe.train.accumulate == 0, ErrorKind::config,
        "train.accumulate: must divide train.batch: accumulate is ", recipe.train.accumulate,
        ", batch is ", recipe.train.batch);
  check(recipe.train.sequence <= recipe.model.context, ErrorKind::config,
        "train.sequence: longer than the model allows: sequence is ", recipe.train.sequence,
        ", model.context is ", recipe.model.context,
        "; raise model.context or shorten train.sequence");
  const auto prompt = static_cast<int64_t>(recipe.sample.prompt.size());
  const bool bytes = recipe.data.tokenizer.empty();
  check(!bytes || recipe.sample.tokens == 0 || prompt <= recipe.model.context, ErrorKind::config,
        "sample.prompt: longer than the model allows: the prompt has ", prompt,
        " bytes, model.context is ", recipe.model.context,
        "; shorten it, or set sample.tokens = 0");
  check(!bytes || recipe.model.vocab >= 256, ErrorKind::config,
        "model.vocab: byte tokens need at least 256: got ", recipe.model.vocab);
}

bool may_change_on_resume(const std::string& path) {
  return std::find(changeable.begin(), changeable.end(), path) != changeable.end();
}

void check_resumable(const Recipe& saved, const Recipe& now) {
  std::string differing;
  for (const Difference& difference : diff_configs(saved, now)) {
    if (!may_change_on_resume(difference.path)) {
      differing += concat(differing.empty() ? "" : ", ", difference.path, " was ", difference.a,
                          ", is ", difference.b);
    }
  }
  std::string allowed;
  for (const std::string_view key : changeable) {
    allowed += concat(allowed.empty() ? "" : ", ", key);
  }
  check(differing.empty(), ErrorKind::config, "resume: the recipe changed: ", differing,
        "; put these back, or start another --run (may change: ", allowed, ")");
}

std::string recipe_help() {
  Recipe defaults;
  return help_text(fields_of(defaults));
}

}  // namespace ingot
