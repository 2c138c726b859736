#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "ingot/cli/recipe.h"
#include "ingot/data/masking.h"
#include "ingot/models/bert.h"

namespace ingot {

// Recipes of models that see both sides of a token (models/bert.h). `kind` is what is trained:
//   mlm       hidden tokens are named; data.files is plain text
//   classify  a class is told from a text; data.files is JSONL with "text" and "label"
//   embed     texts that belong together have near embeddings; JSONL with "text" and "positive"

struct EncoderModelConfig : BertConfig {
  std::string from;

  template <class V>
  void describe(V& v) {
    v("from", from,
      "folder of a trained model: its weights, and its values of keys that are not "
      "set; empty: none");
    BertConfig::describe(v);
  }
};

struct EncoderLoopConfig {
  int64_t steps = 1000;
  int64_t batch = 32;
  int64_t accumulate = 1;
  int64_t sequence = 128;
  bool recompute = false;

  template <class V>
  void describe(V& v) {
    v("steps", steps, at_least(1), "optimizer steps of the whole run");
    v("batch", batch, at_least(1), "texts, or pairs of texts, per optimizer step");
    v("accumulate", accumulate, at_least(1), "micro-batches of a batch; divides it");
    v("sequence", sequence, at_least(3), "tokens of a text, with those around it; longer are cut");
    v("recompute", recompute, "keep no activations inside a block");
  }
};

struct EmbedConfig {
  double temperature = 0.05;

  template <class V>
  void describe(V& v) {
    v("temperature", temperature, above(0),
      "cosines are divided by it; the other texts of a micro-batch are the negatives");
  }
};

struct EncoderRecipe {
  std::string kind = "mlm";
  int64_t seed = 1;
  std::string dtype = "bf16";
  EncoderModelConfig model;
  nn::InitConfig init;
  TextConfig data;
  MaskingConfig masking;
  EmbedConfig embed;
  EncoderLoopConfig train;
  OptimizerConfig optim;
  ScheduleConfig schedule;
  EvaluateConfig evaluate;
  CheckpointConfig checkpoint;
  NumbersConfig numbers;
  TrackConfig track;

  template <class V>
  void describe(V& v) {
    v("kind", kind, one_of({"mlm", "classify", "embed"}), "what is trained");
    v("seed", seed, at_least(0), "of initial weights, data order, masking and dropout");
    v("dtype", dtype, one_of({"bf16", "f32"}), "weights and activations");
    v.group("model", model, "the network");
    v.group("init", init, "how its weights start");
    v.group("data", data, "what it reads");
    v.group("masking", masking, "mlm: how tokens are hidden");
    v.group("embed", embed, "embed: the loss");
    v.group("train", train, "the loop");
    v.group("optim", optim, "the optimizer");
    v.group("schedule", schedule, "the learning rate over the run, times optim.lr");
    v.group("evaluate", evaluate, "measuring on held-out rows");
    v.group("checkpoint", checkpoint, "saving");
    v.group("numbers", numbers, "values that are not finite, spikes, silent corruption");
    v.group("track", track, "records of the run");
  }
};

// Whether a recipe is one of these, by its kind.
bool is_encoder_recipe(const std::filesystem::path& path,
                       const std::vector<std::string>& assignments);
// The same of a recipe's text; `name` stands for it in messages.
bool is_encoder_text(const std::string& toml, const std::string& name);
// As read_recipe and parse_recipe.
EncoderRecipe read_encoder_recipe(const std::filesystem::path& path,
                                  const std::vector<std::string>& assignments);
EncoderRecipe parse_encoder_recipe(const std::string& toml, const std::string& name,
                                   const std::vector<std::string>& assignments = {});
// All keys with defaults and help.
std::string encoder_recipe_help();

}  // namespace ingot
