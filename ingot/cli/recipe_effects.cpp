#include "ingot/cli/recipe_effects.h"

#include <algorithm>

#include "ingot/base/config_diff.h"
#include "ingot/cli/run_data.h"
#include "ingot/tensor/tensor_dict.h"

namespace ingot {
namespace {

bool always(const Recipe&) { return true; }

bool compares_answers(const Recipe& r) { return run_kind(r.kind).rows > 1; }

template <size_t N>
struct Name {
  char text[N];
  constexpr Name(const char (&from)[N]) { std::copy_n(from, N, text); }
};
template <Name kind>
bool is(const Recipe& r) {
  return r.kind == kind.text;
}

bool has_adapters(const Recipe& r) { return r.peft.on(); }
bool has_low_rank(const Recipe& r) { return r.peft.low_rank(); }

}  // namespace

bool learns_tokens(const Recipe& recipe) {
  return recipe.kind == "pretrain" || recipe.kind == "sft";
}

const std::vector<KeyEffect>& key_effects() {
  static const std::vector<KeyEffect> table = {
      {"kind", always, ""},
      {"seed", always, ""},
      {"dtype", always, ""},
      {"products", always, ""},
      {"deterministic", always, ""},
      {"model.mtp.**", learns_tokens, "is of kinds that learn tokens, pretrain and sft"},
      {"model.**", always, ""},
      {"init.**", [](const Recipe& r) { return r.model.from.empty() || r.model.mtp.depth > 0; },
       "is of new weights, and model.from gives all"},
      {"data.anneal_files", always, ""},  // run_data.cpp refuses them beside rows
      {"data.files", always, ""},
      {"data.validation_*", always, ""},
      {"data.tokenizer", always, ""},
      {"data.fim_spm_rate", [](const Recipe& r) { return reads_rows(r) && r.data.fim_rate > 0; },
       "is of rows with data.fim_rate above 0"},
      {"data.duplicates", [](const Recipe& r) { return reads_rows(r) && !compares_answers(r); },
       "is of rows that are stored as tokens"},
      {"data.weights", [](const Recipe& r) { return reads_rows(r) && !compares_answers(r); },
       "is of rows that are stored as tokens"},
      {"data.caps", [](const Recipe& r) { return reads_rows(r) && !compares_answers(r); },
       "is of rows that are stored as tokens"},
      {"data.store", [](const Recipe& r) { return reads_rows(r) && !compares_answers(r); },
       "is of rows that are stored as tokens"},
      {"data.*", reads_rows, "is of rows, and this run reads plain text"},
      {"train.epochs", reads_rows, "is of rows, and plain text is read by train.steps"},
      {"train.z_loss", learns_tokens, "is of kinds that learn tokens, pretrain and sft"},
      {"train.label_smoothing", learns_tokens, "is of kinds that learn tokens, pretrain and sft"},
      {"train.neftune", learns_tokens, "is of kinds that learn tokens, pretrain and sft"},
      {"train.mtp_weight",
       [](const Recipe& r) { return learns_tokens(r) && r.model.mtp.depth > 0; },
       "is of models with model.mtp.depth above 0 that learn tokens"},
      {"train.batch_warmup", [](const Recipe& r) { return r.train.accumulate > 1 || r.train.fit; },
       "is of steps in several micro-batches, and train.accumulate is 1"},
      {"train.recompute_layers", [](const Recipe& r) { return r.train.recompute; },
       "is of train.recompute = true"},
      {"train.offload_to", [](const Recipe& r) { return !r.train.offload.empty(); },
       "is of train.offload"},
      {"train.**", always, ""},
      {"optim.ema.decay", always, ""},
      {"optim.ema.*", [](const Recipe& r) { return r.optim.ema.decay > 0; },
       "is of an average of weights, and optim.ema.decay is 0"},
      {"optim.lookahead.every", always, ""},
      {"optim.lookahead.*", [](const Recipe& r) { return r.optim.lookahead.every > 0; },
       "is of lookahead, and optim.lookahead.every is 0"},
      {"optim.sam.rho", always, ""},
      {"optim.sam.*", [](const Recipe& r) { return r.optim.sam.rho > 0; },
       "is of SAM, and optim.sam.rho is 0"},
      {"optim.halves", [](const Recipe& r) { return r.dtype != "f32"; },
       "is of half-precision weights, and dtype is f32"},
      {"optim.**", always, ""},
      {"schedule.**", always, ""},
      {"mup.**", always, ""},
      {"evaluate.sets", always, ""},  // run_data.cpp refuses them beside rows
      {"evaluate.min_gain", [](const Recipe& r) { return r.evaluate.patience > 0; },
       "is of evaluate.patience, which is 0"},
      {"evaluate.**", always, ""},
      {"checkpoint.**", always, ""},
      {"numbers.skips", [](const Recipe& r) { return r.numbers.non_finite == "skip"; },
       "is of numbers.non_finite = \"skip\""},
      {"numbers.spike_*", [](const Recipe& r) { return r.numbers.spike > 0; },
       "is of finding spikes, and numbers.spike is 0"},
      {"numbers.on_spike", [](const Recipe& r) { return r.numbers.spike > 0; },
       "is of finding spikes, and numbers.spike is 0"},
      {"numbers.rewinds",
       [](const Recipe& r) { return r.numbers.spike > 0 && r.numbers.on_spike == "rewind"; },
       "is of numbers.on_spike = \"rewind\""},
      {"numbers.**", always, ""},
      {"sample.**", always, ""},
      {"track.**", always, ""},
      {"peft.kind", always, ""},
      {"peft.loftq_iterations",
       [](const Recipe& r) { return has_low_rank(r) && r.peft.init == "loftq"; },
       "is of peft.init = \"loftq\""},
      {"peft.dora_whole_gradient", [](const Recipe& r) { return r.peft.kind == "dora"; },
       "is of peft.kind = \"dora\""},
      {"peft.rank", has_low_rank, "is of peft.kind = \"lora\" and \"dora\""},
      {"peft.alpha", has_low_rank, "is of peft.kind = \"lora\" and \"dora\""},
      {"peft.rslora", has_low_rank, "is of peft.kind = \"lora\" and \"dora\""},
      {"peft.dropout", has_low_rank, "is of peft.kind = \"lora\" and \"dora\""},
      {"peft.init", has_low_rank, "is of peft.kind = \"lora\" and \"dora\""},
      {"peft.plus_ratio", has_low_rank, "is of peft.kind = \"lora\" and \"dora\""},
      {"peft.width", [](const Recipe& r) { return r.peft.kind == "bottleneck"; },
       "is of peft.kind = \"bottleneck\""},
      {"peft.*", has_adapters, "is of adapters, and peft.kind is empty"},
      {"dpo.**", is<"dpo">, "is of kind = \"dpo\""},
      {"orpo.**", is<"orpo">, "is of kind = \"orpo\""},
      {"simpo.**", is<"simpo">, "is of kind = \"simpo\""},
      {"cpo.**", is<"cpo">, "is of kind = \"cpo\""},
      {"kto.**", is<"kto">, "is of kind = \"kto\""},
      {"reward.**", is<"reward">, "is of kind = \"reward\""},
      {"distill.answer_tokens",
       [](const Recipe& r) { return r.kind == "distill" && r.distill.on_policy > 0; },
       "is of kind = \"distill\" with distill.on_policy above 0"},
      {"distill.**", is<"distill">, "is of kind = \"distill\""},
  };
  return table;
}

const KeyEffect* effect_of(std::string_view key) {
  const auto found = std::ranges::find_if(
      key_effects(), [key](const KeyEffect& effect) { return matches(effect.pattern, key); });
  return found == key_effects().end() ? nullptr : &*found;
}

void check_effects(const Recipe& start, const Recipe& recipe) {
  for (const Difference& difference : diff_configs(start, recipe)) {
    const KeyEffect* effect = effect_of(difference.path);
    check(effect != nullptr, ErrorKind::internal, difference.path,
          ": no row of key_effects says in which runs it counts");
    check(effect->counts(recipe), ErrorKind::config, difference.path,
          ": has no effect in this run: ", difference.b, " ", effect->what, "; leave it out");
  }
}

}  // namespace ingot
