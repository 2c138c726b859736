#include "ingot/cli/encoder_recipe.h"

#include "ingot/base/config_diff.h"
#include "ingot/base/config_help.h"
#include "ingot/base/config_toml.h"
#include "ingot/cli/recipe_kinds.h"

namespace ingot {
namespace {

bool is_encoder_kind(const std::optional<std::string>& kind) {
  return kind && (*kind == "mlm" || *kind == "classify" || *kind == "embed");
}

// Keys of other kinds: the first that is set is named.
void check_encoder_effects(const EncoderRecipe& recipe) {
  EncoderRecipe start;
  start.kind = recipe.kind;
  start.optim = recipe.optim;
  start.schedule = recipe.schedule;
  start.model = recipe.model;
  for (const Difference& difference : diff_configs(start, recipe)) {
    const std::string& key = difference.path;
    const bool for_others = key == "evaluate.min_gain" || key == "track.report" ||
                            (key.starts_with("masking.") && recipe.kind != "mlm") ||
                            (key.starts_with("embed.") && recipe.kind != "embed");
    check(!for_others, ErrorKind::config, key, ": has no effect with kind = \"", recipe.kind,
          "\": it is ", difference.b, "; leave it out");
  }
  check(recipe.optim.kind != "sophia_g", ErrorKind::config,
        "optim.kind: \"sophia_g\" draws next tokens from the model, which encoders have not; "
        "choose another");
}

void check_encoder_recipe(const EncoderRecipe& recipe) {
  check_schedule(recipe.schedule.schedule, recipe.train.steps);
  check(recipe.schedule.unit == "steps", ErrorKind::config,
        "schedule.unit: encoders count in steps: got ", recipe.schedule.unit);
  check(recipe.train.batch % recipe.train.accumulate == 0, ErrorKind::config,
        "train.accumulate: must divide train.batch: accumulate is ", recipe.train.accumulate,
        ", batch is ", recipe.train.batch);
  check(recipe.train.sequence <= recipe.model.context, ErrorKind::config,
        "train.sequence: longer than the model allows: sequence is ", recipe.train.sequence,
        ", model.context is ", recipe.model.context);
  const int64_t rows = recipe.train.batch / recipe.train.accumulate;
  check(recipe.kind != "embed" || rows > 1, ErrorKind::config,
        "train.batch: the other pairs of a micro-batch are the negatives: it has ", rows,
        " pair; raise train.batch, or lower train.accumulate");
  check(recipe.numbers.non_finite != "lower_scale", ErrorKind::config,
        "numbers.non_finite: only f16 has a loss scale: dtype is ", recipe.dtype,
        "; choose halt or skip");
  const bool ends_early = recipe.evaluate.patience > 0 || recipe.checkpoint.best;
  check(!ends_early && recipe.evaluate.gap == 0 && recipe.evaluate.sets.empty(), ErrorKind::config,
        "evaluate: patience, gap and sets, and checkpoint.best, are for language models; a recipe "
        "of kind ",
        recipe.kind, " has none of them: leave them out");
}

EncoderRecipe assemble(std::vector<Setting> settings, const std::vector<std::string>& assignments) {
  EncoderRecipe recipe;
  choose_kinds(recipe.optim, recipe.schedule, settings, assignments);
  const auto from = chosen_text(settings, assignments, "model.from");
  if (from && !from->empty()) {
    static_cast<BertConfig&>(recipe.model) = read_bert(*from).config;
  }
  const Fields fields = fields_of(recipe);
  for (const std::string& assignment : assignments) {
    settings.push_back(command_line_setting(fields, assignment));
  }
  apply_settings(fields, settings);
  recipe.model.mlm = recipe.kind == "mlm";
  recipe.model.labels = 0;  // the data's
  check_encoder_recipe(recipe);
  check_encoder_effects(recipe);
  return recipe;
}

}  // namespace

bool is_encoder_recipe(const std::filesystem::path& path,
                       const std::vector<std::string>& assignments) {
  return is_encoder_kind(chosen_text(toml_file_settings(path), assignments, "kind"));
}

bool is_encoder_text(const std::string& toml, const std::string& name) {
  return is_encoder_kind(chosen_text(toml_settings(toml, name), {}, "kind"));
}

EncoderRecipe read_encoder_recipe(const std::filesystem::path& path,
                                  const std::vector<std::string>& assignments) {
  return assemble(toml_file_settings(path), assignments);
}

EncoderRecipe parse_encoder_recipe(const std::string& toml, const std::string& name,
                                   const std::vector<std::string>& assignments) {
  return assemble(toml_settings(toml, name), assignments);
}

std::string encoder_recipe_help() {
  EncoderRecipe defaults;
  return help_text(fields_of(defaults));
}

}  // namespace ingot
