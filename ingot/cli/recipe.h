#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "ingot/base/config_diff.h"
#include "ingot/base/describe.h"
#include "ingot/cli/kinds.h"
#include "ingot/data/rows_config.h"
#include "ingot/data/text.h"
#include "ingot/models/decoder_config.h"
#include "ingot/nn/initialise.h"
#include "ingot/optim/schedule.h"
#include "ingot/optim/table.h"
#include "ingot/peft/config.h"
#include "ingot/posttrain/distillation.h"
#include "ingot/posttrain/preference_objective.h"
#include "ingot/scaling/mup.h"
#include "ingot/train/numbers.h"

namespace ingot {

// A recipe: everything that decides what a run computes. One TOML file; the same keys in --set.

// The network: the shape of a decoder, or a trained model with changes.
struct ModelConfig : DecoderConfig {
  std::string from;

  template <class V>
  void describe(V& v) {
    v("from", from,
      "folder or GGUF file of a trained model: its weights, and its values of all keys that are "
      "not "
      "set; empty: none");
    DecoderConfig::describe(v);
  }
};

// What a run reads: files of text, or rows of any layout.
struct DataConfig : TextConfig, RowsConfig {
  std::vector<std::string> anneal_files;

  template <class V>
  void describe(V& v) {
    TextConfig::describe(v);
    v("anneal_files", anneal_files,
      "text files that are read instead while a wsd schedule decays: an annealing phase; empty: "
      "none");
    RowsConfig::describe(v);
  }
};

struct LoopConfig {
  int64_t steps = 1000;
  std::string until;
  double epochs = 0;
  int64_t batch = 16;
  int64_t accumulate = 1;
  int64_t batch_warmup = 0;
  int64_t sequence = 256;
  double z_loss = 0;
  double mtp_weight = 0.3;
  double label_smoothing = 0;
  double neftune = 0;
  std::vector<std::string> freeze;
  bool recompute = false;
  int64_t recompute_layers = 0;
  std::vector<std::string> offload;
  std::string offload_to;
  bool fit = false;

  template <class V>
  void describe(V& v) {
    v("steps", steps, at_least(1), "optimizer steps of the whole run");
    v("until", until,
      "time at which the run is to be over: \"06:00\", \"2026-12-01 06:00\" or \"slurm\", the end "
      "of the job; a wsd schedule's decay begins so that it ends before, train.steps at most; "
      "empty: "
      "none");
    v("epochs", epochs, at_least(0),
      "passes over the rows, which then decide the steps; 0: steps do. Not for plain text");
    v("batch", batch, at_least(1), "sequences per optimizer step");
    v("accumulate", accumulate, at_least(1),
      "micro-batches that a batch is computed in; divides it");
    v("batch_warmup", batch_warmup, at_least(0),
      "steps in which the number of micro-batches grows from 1 to accumulate");
    v("sequence", sequence, at_least(1), "tokens per sequence");
    v("z_loss", z_loss, at_least(0), "weight of logsumexp² in the loss; keeps logits small");
    v("mtp_weight", mtp_weight, at_least(0),
      "weight of the mean loss of the heads of model.mtp, which predict further tokens");
    v("label_smoothing", label_smoothing, half_open(0, 1),
      "share of the target spread over all tokens");
    v("neftune", neftune, at_least(0), "noise on the embeddings: alpha of NEFTune; 0: none");
    v("freeze", freeze, "patterns of parameters that are not trained, such as layers.0.**");
    v("recompute", recompute,
      "keep no activations inside a block, compute them again in the backward");
    v("recompute_layers", recompute_layers, at_least(0),
      "how many blocks recompute, the first ones; 0: all");
    v("offload", offload,
      "what lies in files that the system writes out when memory gets short: optimizer, "
      "activations");
    v("offload_to", offload_to, "folder of these files; empty: the run's");
    v("fit", fit,
      "at the start of a run, raise accumulate to the least that fits in the memory available");
  }
};

struct EvaluateConfig {
  int64_t every = 200;
  int64_t batch = 16;
  int64_t batches = 0;
  std::vector<std::string> sets;
  int64_t patience = 0;
  double min_gain = 0;
  double gap = 0;

  template <class V>
  void describe(V& v) {
    v("every", every, at_least(0), "steps between evaluations; 0: at the end only");
    v("batch", batch, at_least(1), "sequences per batch");
    v("batches", batches, at_least(0),
      "batches measured each time; 0: all. At the end it is always all");
    v("sets", sets, "further texts to measure on, each \"name=file\"");
    v("patience", patience, at_least(0),
      "evaluations without gain in held-out loss after which the run ends with its best "
      "checkpoint; "
      "0: never");
    v("min_gain", min_gain, at_least(0), "nats by which the loss must fall to be a gain");
    v("gap", gap, at_least(0),
      "warn when the held-out loss exceeds that of training by so many nats; 0: never");
  }
};

struct CheckpointConfig {
  int64_t every = 500;
  int64_t keep = 2;
  int64_t keep_every = 0;
  bool best = false;
  bool background = true;

  template <class V>
  void describe(V& v) {
    v("every", every, at_least(0), "steps between checkpoints; 0: at the end only");
    v("keep", keep, at_least(1), "newest checkpoints that stay");
    v("keep_every", keep_every, at_least(0), "those of such steps stay too; 0: none");
    v("best", best, "keep the checkpoint of the least held-out loss too");
    v("background", background,
      "a thread writes while the next gradients are computed; the update waits for it");
  }
};

struct SampleConfig {
  std::string prompt;
  int64_t tokens = 400;
  double temperature = 0.8;
  int64_t every = 0;

  template <class V>
  void describe(V& v) {
    v("prompt", prompt, "text that the sample at the end continues");
    v("tokens", tokens, at_least(0), "length of the sample; 0: none");
    v("temperature", temperature, at_least(0), "0 takes the likeliest token each time");
    v("every", every, at_least(0), "steps between samples in samples.jsonl; 0: at the end only");
  }
};

struct TrackConfig {
  bool store = true;
  bool tensorboard = true;
  bool report = true;

  template <class V>
  void describe(V& v) {
    v("store", store, "keep a record of the run in runs.sqlite beside its folder");
    v("tensorboard", tensorboard, "write curves for TensorBoard");
    v("report", report, "write report.md at the end");
  }
};

// A teacher, and whose texts it is asked about.
struct DistillRun : DistillConfig {
  std::string teacher;
  std::string cache;
  std::string context;
  double on_policy = 0;
  int64_t answer_tokens = 64;

  template <class V>
  void describe(V& v) {
    v("teacher", teacher,
      "folder or file of the model to learn from; empty: the model itself without its adapters");
    DistillConfig::describe(v);
    v("cache", cache,
      "folder that keeps what the teacher says, for all epochs and runs; needs top_k; empty: none");
    v("context", context, "text that the teacher reads before every row, and the student does not");
    v("on_policy", on_policy, in(0, 1),
      "share of the rows whose answers the student writes itself");
    v("answer_tokens", answer_tokens, at_least(1), "length of answers it writes");
  }
};

struct Recipe {
  std::string kind = "pretrain";
  int64_t seed = 1;
  std::string dtype = "bf16";
  std::string products = "plain";
  std::string deterministic = "layout";
  ModelConfig model;
  nn::InitConfig init;
  DataConfig data;
  LoopConfig train;
  OptimizerConfig optim;
  ScheduleConfig schedule;
  MupConfig mup;
  EvaluateConfig evaluate;
  CheckpointConfig checkpoint;
  NumbersConfig numbers;
  SampleConfig sample;
  TrackConfig track;
  peft::PeftConfig peft;
  DpoConfig dpo;
  OrpoConfig orpo;
  SimpoConfig simpo;
  CpoConfig cpo;
  KtoConfig kto;
  RewardConfig reward;
  DistillRun distill;

  template <class V>
  void describe(V& v) {
    v("kind", kind, one_of(run_kind_names()), "what is trained");
    v("seed", seed, at_least(0), "of initial weights, data order and dropout");
    v("dtype", dtype, one_of({"bf16", "f16", "f32"}),
      "weights and activations; bf16 and f16 keep f32 masters, moments and gradients, f16 a loss "
      "scale");
    v("products", products,
      one_of({"plain", "fp8", "fp8_blocks", "mxfp8", "mxfp6", "mxfp4", "nvfp4"}),
      "what the operands of the layers' linear maps are rounded to, emulated: their numbers, not "
      "their speed");
    v("deterministic", deterministic, one_of({"layout", "invariant"}),
      "layout: the same bits for the same division into micro-batches; invariant: for any, at the "
      "cost of computing every sequence by itself");
    v.group("model", model, "the network");
    v.group("init", init, "how its weights start");
    v.group("data", data, "what it reads");
    v.group("train", train, "the loop");
    v.group("optim", optim, "the optimizer");
    v.group("schedule", schedule, "the learning rate over the run, times optim.lr");
    v.group("mup", mup, "learning rates that do not depend on the width of the model");
    v.group("evaluate", evaluate, "measuring on held-out text");
    v.group("checkpoint", checkpoint, "saving");
    v.group("numbers", numbers, "values that are not finite, spikes, silent corruption");
    v.group("sample", sample, "what the trained model writes at the end");
    v.group("track", track, "what is kept of the run beside its log");
    v.group("peft", peft, "adapters beside a frozen model");
    v.group("dpo", dpo, "kind = \"dpo\"");
    v.group("orpo", orpo, "kind = \"orpo\"");
    v.group("simpo", simpo, "kind = \"simpo\"");
    v.group("cpo", cpo, "kind = \"cpo\"");
    v.group("kto", kto, "kind = \"kto\"");
    v.group("reward", reward, "kind = \"reward\"");
    v.group("distill", distill, "kind = \"distill\"");
  }
};

// Micro-batches of step t, 0 for the first: ⌈accumulate·(t+1)/batch_warmup⌉ during the warm-up of
// the batch, accumulate after it.
int64_t micro_batches(const LoopConfig& train, int64_t t);
// Tokens of the first `steps` steps.
int64_t tokens_of_steps(const LoopConfig& train, int64_t steps);
// The learning rate of step t by the recipe's schedule, in steps or in tokens: a schedule in tokens
// is read at the step's last token.
// `steps`: of the whole run, where a deadline has decided them; 0: the recipe's.
double learning_rate_of_step(const Recipe& recipe, int64_t t, int64_t steps = 0);
// What the schedule's lengths are measured against.
int64_t schedule_total(const Recipe& recipe, int64_t steps = 0);
// The first step of a wsd schedule's decay, in a run of so many steps; takes such a schedule.
int64_t decay_start(const Recipe& recipe, int64_t steps = 0);

// Reads a recipe and applies `--set` assignments over it. Throws Error(config) naming file and
// line, or --set. Paths in the file are relative to the current folder.
Recipe read_recipe(const std::filesystem::path& path, const std::vector<std::string>& assignments);
// The same from a TOML text; `name` stands for it in messages.
Recipe parse_recipe(const std::string& toml, const std::string& name,
                    const std::vector<std::string>& assignments = {});

// Checks what no single field can: throws Error(config) naming both keys.
void check_recipe(const Recipe& recipe);

// Whether a resumed run may change this key: those that decide when it stops, saves, measures and
// prints.
bool may_change_on_resume(const std::string& path);
// Throws Error(config) with every key that differs but may not.
void check_resumable(const Recipe& saved, const Recipe& now);

// The same for a run that branches off: how long it is and its schedule may differ too.
void check_branchable(const Recipe& saved, const Recipe& now);

// All keys with defaults and help, for --help; those of every kind of optimizer and schedule.
std::string recipe_help();

}  // namespace ingot
