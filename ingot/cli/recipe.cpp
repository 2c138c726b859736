#include "ingot/cli/recipe.h"

#include <algorithm>
#include <array>

#include "ingot/base/config_help.h"
#include "ingot/base/config_toml.h"
#include "ingot/cli/model_source.h"
#include "ingot/cli/recipe_effects.h"
#include "ingot/cli/recipe_kinds.h"
#include "ingot/models/architecture.h"

namespace ingot {
namespace {

constexpr std::array<std::string_view, 31> changeable = {
    "evaluate.every",
    "evaluate.batches",
    "evaluate.batch",
    "evaluate.sets",
    "evaluate.patience",
    "evaluate.min_gain",
    "evaluate.gap",
    "checkpoint.every",
    "checkpoint.keep",
    "checkpoint.keep_every",
    "checkpoint.best",
    "checkpoint.background",
    "sample.prompt",
    "sample.tokens",
    "sample.temperature",
    "sample.every",
    "numbers.diagnose",
    "numbers.recheck",
    "numbers.seal",
    "numbers.non_finite",
    "track.store",
    "track.tensorboard",
    "track.report",
    "train.recompute",
    "data.files",
    "data.store",
    "train.until",
    "numbers.checksums",
    "train.offload",
    "train.offload_to",
    "train.recompute_layers",
};

// The model's values before the recipe's: those of a trained model, or of a family.
void start_model(ModelConfig& model, const std::vector<Setting>& settings,
                 const std::vector<std::string>& assignments) {
  const auto from = chosen_text(settings, assignments, "model.from");
  const auto architecture = chosen_text(settings, assignments, "model.architecture");
  if (from && !from->empty()) {
    static_cast<DecoderConfig&>(model) = source_config(*from);
    check(!architecture || *architecture == model.architecture, ErrorKind::config,
          "model.architecture: not that of model.from: architecture is ", architecture.value_or(""),
          ", ", *from, " is ", model.architecture, "; leave one of the two out");
  } else if (architecture) {
    static_cast<DecoderConfig&>(model) = start_of(*architecture);
  }
}

// A stretch that the recipe puts on a trained model starts from the length it was trained on.
void stretch_from(ModelConfig& model, int64_t trained) {
  const std::string& kind = model.rope.scaling;
  const bool needed = kind == "llama3" || kind == "yarn" || kind == "longrope";
  if (needed && model.rope.original_context == 0 && model.context > trained) {
    model.rope.original_context = trained;
  }
}

Recipe assemble(std::vector<Setting> settings, const std::vector<std::string>& assignments) {
  Recipe recipe;
  choose_kinds(recipe.optim, recipe.schedule, settings, assignments);
  start_model(recipe.model, settings, assignments);
  const int64_t trained = recipe.model.context;
  Recipe start = recipe;
  const Fields fields = fields_of(recipe);
  for (const std::string& assignment : assignments) {
    settings.push_back(command_line_setting(fields, assignment));
  }
  apply_settings(fields, settings);
  if (!recipe.model.from.empty()) {
    stretch_from(recipe.model, trained);
  }
  check_recipe(recipe);
  start.kind = recipe.kind;  // which is not what has no effect
  check_effects(start, recipe);
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

namespace {

void check_mup(const Recipe& recipe) {
  if (!recipe.mup.on()) {
    check(recipe.mup.base_head_dim == 0, ErrorKind::config,
          "mup.base_head_dim: has no effect while mup.base_width is 0; set both, or neither");
    return;
  }
  mup_rule(recipe.optim.kind);
  const DecoderConfig model = complete(recipe.model);
  const auto refuse = [](bool is, const char* key, const char* why) {
    check(!is, ErrorKind::config, "mup: ", why, ": change ", key, ", or set mup.base_width = 0");
  };
  refuse(*model.tied, "model.tied", "the output map needs weights of its own");
  refuse(!recipe.model.from.empty(), "model.from", "it says how a new model starts");
  refuse(recipe.peft.on(), "peft.kind", "it says how all weights of a new model learn");
  refuse(model.moe.experts > 0, "model.moe.experts", "its tables say nothing of routers");
  refuse(model.latent.kv_rank > 0, "model.latent", "its tables say nothing of latent attention");
  refuse(model.mtp.depth > 0, "model.mtp.depth", "its tables say nothing of further heads");
  refuse(recipe.mup.base_head_dim > 0 && recipe.model.attention_scale > 0, "model.attention_scale",
         "mup.base_head_dim decides the scale of the scores");
}

}  // namespace

void check_recipe(const Recipe& recipe) {
  check_mup(recipe);
  peft::check_peft(recipe.peft);
  check(!recipe.peft.on() || recipe.train.freeze.empty(), ErrorKind::config,
        "train.freeze: all weights are frozen beside adapters; leave it out, or peft.kind");
  check(
      recipe.kind != "distill" || !recipe.distill.teacher.empty() ||
          (recipe.peft.on() && !recipe.distill.context.empty()),
      ErrorKind::config,
      "distill.teacher: empty, so the model without its adapters is the teacher, which knows more "
      "only by distill.context: set peft.kind and distill.context, or name a teacher");
  const bool cached = recipe.kind == "distill" && !recipe.distill.cache.empty();
  check(!cached || recipe.distill.top_k > 0, ErrorKind::config,
        "distill.cache: keeps the teacher's likeliest tokens: set distill.top_k, 64 for example");
  check(!cached || recipe.distill.on_policy == 0, ErrorKind::config,
        "distill.cache: answers that the student writes are new in every step: leave it out, or "
        "set distill.on_policy = 0");
  check_schedule(recipe.schedule.schedule, schedule_total(recipe));
  check(recipe.train.batch_warmup <= recipe.train.steps, ErrorKind::config,
        "train.batch_warmup: longer than the run: batch_warmup is ", recipe.train.batch_warmup,
        " steps, train.steps is ", recipe.train.steps);
  complete(recipe.model);
  const bool in_few_bits = recipe.peft.on() && recipe.peft.base != "as_is";
  check(recipe.products == "plain" || (recipe.model.moe.experts == 0 && !in_few_bits),
        ErrorKind::config, "products: \"", recipe.products, "\" rounds dense linear maps, not ",
        in_few_bits ? concat("weights kept as peft.base = \"", recipe.peft.base, "\"") : "experts",
        "; set products = \"plain\"");
  const bool decays = recipe.schedule.kind == "wsd" && recipe.schedule.unit == "steps";
  check(recipe.train.until.empty() || decays, ErrorKind::config,
        "train.until: places the decay of a wsd schedule in steps: schedule.kind is ",
        recipe.schedule.kind, ", unit ", recipe.schedule.unit,
        "; set schedule.kind = \"wsd\", or leave until out");
  check(recipe.train.until.empty() || recipe.train.epochs == 0, ErrorKind::config,
        "train.until: a run ends at a time or after train.epochs = ", recipe.train.epochs,
        "; leave one of the two out");
  check(recipe.data.anneal_files.empty() || decays, ErrorKind::config,
        "data.anneal_files: are read while a wsd schedule in steps decays: schedule.kind is ",
        recipe.schedule.kind, ", unit ", recipe.schedule.unit,
        "; set schedule.kind = \"wsd\", or leave them out");
  for (const std::string& what : recipe.train.offload) {
    check(what == "optimizer" || what == "activations", ErrorKind::config, "train.offload: \"",
          what, "\" cannot lie in files; known are optimizer and activations");
  }
  check(recipe.optim.kind != "sophia_g" || learns_tokens(recipe), ErrorKind::config,
        "optim.kind: \"sophia_g\" draws next tokens from the model, which kind = \"", recipe.kind,
        "\" does not learn; choose another, such as \"sophia_h\"");
  check(recipe.optim.kind != "sophia_h" || recipe.dtype == "f32", ErrorKind::config,
        "optim.kind: \"sophia_h\" takes differences of gradients, which half-precision weights are "
        "too coarse for: dtype is ",
        recipe.dtype, "; set dtype = \"f32\", or optim.kind = \"sophia_g\"");
  check(recipe.deterministic != "invariant" || run_kind(recipe.kind).rows == 1, ErrorKind::config,
        "deterministic: \"invariant\" takes every row by itself, and kind = \"", recipe.kind,
        "\" compares rows; choose \"layout\"");
  check(recipe.numbers.non_finite != "lower_scale" || recipe.dtype == "f16", ErrorKind::config,
        "numbers.non_finite: only f16 has a loss scale: dtype is ", recipe.dtype,
        "; choose halt or skip");
  check(recipe.train.batch % recipe.train.accumulate == 0, ErrorKind::config,
        "train.accumulate: must divide train.batch: accumulate is ", recipe.train.accumulate,
        ", batch is ", recipe.train.batch);
  const bool grows = recipe.model.rope.scaling == "dynamic";  // beyond the context, as it is meant
  check(recipe.train.sequence <= recipe.model.context || grows, ErrorKind::config,
        "train.sequence: longer than the model allows: sequence is ", recipe.train.sequence,
        ", model.context is ", recipe.model.context,
        "; raise model.context or shorten train.sequence");
  const auto prompt = static_cast<int64_t>(recipe.sample.prompt.size());
  const bool bytes = recipe.data.tokenizer.empty() && recipe.model.from.empty();
  check(!bytes || recipe.sample.tokens == 0 || prompt <= recipe.model.context, ErrorKind::config,
        "sample.prompt: longer than the model allows: the prompt has ", prompt,
        " bytes, model.context is ", recipe.model.context,
        "; shorten it, or set sample.tokens = 0");
  check(!bytes || recipe.model.vocab >= 256, ErrorKind::config,
        "model.vocab: byte tokens need at least 256: got ", recipe.model.vocab);
}

int64_t micro_batches(const LoopConfig& train, int64_t t) {
  if (t >= train.batch_warmup) {
    return train.accumulate;
  }
  return (train.accumulate * (t + 1) + train.batch_warmup - 1) / train.batch_warmup;
}

int64_t tokens_of_steps(const LoopConfig& train, int64_t steps) {
  int64_t micro = 0;
  for (int64_t t = 0; t < std::min(steps, train.batch_warmup); ++t) {
    micro += micro_batches(train, t);
  }
  micro += std::max<int64_t>(0, steps - train.batch_warmup) * train.accumulate;
  return micro * (train.batch / train.accumulate) * train.sequence;
}

int64_t schedule_total(const Recipe& recipe, int64_t steps) {
  const int64_t all = steps > 0 ? steps : recipe.train.steps;
  return recipe.schedule.unit == "tokens" ? tokens_of_steps(recipe.train, all) : all;
}

int64_t decay_start(const Recipe& recipe, int64_t steps) {
  return std::get<WsdSchedule>(recipe.schedule.schedule)
      .decay_start(steps > 0 ? steps : recipe.train.steps);
}

double learning_rate_of_step(const Recipe& recipe, int64_t t, int64_t steps) {
  const int64_t at =
      recipe.schedule.unit == "tokens" ? tokens_of_steps(recipe.train, t + 1) - 1 : t;
  return learning_rate(recipe.schedule.schedule, recipe.optim.learning_rate, at,
                       schedule_total(recipe, steps));
}

bool may_change_on_resume(const std::string& path) {
  return std::find(changeable.begin(), changeable.end(), path) != changeable.end();
}

namespace {

// Throws with every key that differs and for which `may_change` is false.
void check_same(const Recipe& saved, const Recipe& now, std::string_view what,
                bool (*may_change)(const std::string& path), std::string_view also) {
  std::string differing;
  for (const Difference& difference : diff_configs(saved, now)) {
    if (!may_change(difference.path)) {
      differing += concat(differing.empty() ? "" : ", ", difference.path, " was ", difference.a,
                          ", is ", difference.b);
    }
  }
  std::string allowed;
  for (const std::string_view key : changeable) {
    allowed += concat(allowed.empty() ? "" : ", ", key);
  }
  check(differing.empty(), ErrorKind::config, what, ": the recipe changed: ", differing,
        "; put these back, or start another --run (may change: ", allowed, also, ")");
}

bool may_change_on_branch(const std::string& path) {
  return path == "train.steps" || path.starts_with("schedule.") || may_change_on_resume(path);
}

}  // namespace

void check_resumable(const Recipe& saved, const Recipe& now) {
  check_same(saved, now, "resume", may_change_on_resume, "");
}

void check_branchable(const Recipe& saved, const Recipe& now) {
  check_same(saved, now, "branch", may_change_on_branch, ", train.steps, schedule.*");
}

std::string recipe_help() {
  Recipe defaults;
  std::string out = help_text(fields_of(defaults));
  const auto add = [&](std::string_view group, const std::string& kind, const Fields& fields) {
    out += concat("\n[", group, "] with kind = \"", kind, "\"\n", help_text(fields));
  };
  for (const std::string& name : rule_names()) {
    RuleConfig config = rule_config(name).value();
    add("optim", name, std::visit([](auto& any) { return fields_of(any); }, config));
  }
  for (const std::string& name : schedule_names()) {
    Schedule schedule = schedule_named(name).value();
    add("schedule", name, std::visit([](auto& any) { return fields_of(any); }, schedule));
  }
  return out;
}

}  // namespace ingot
