#include "ingot/cli/bench.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <iostream>

#include "ingot/base/json_library.h"
#include "ingot/base/text_size.h"
#include "ingot/cli/commands.h"
#include "ingot/optim/table.h"
#include "ingot/train/machine_peak.h"

namespace ingot {
namespace {

void bench_peak(bool json) {
  const double bf16 = measured_peak_flops(DType::bf16);
  const double f32 = measured_peak_flops(DType::f32);
  const MemoryBandwidth memory = measured_bandwidth();
  if (json) {
    const nlohmann::ordered_json out = {{"bf16_flops", bf16},
                                        {"f32_flops", f32},
                                        {"memory_bytes_per_second", memory.update},
                                        {"memory_read_bytes_per_second", memory.read}};
    std::cout << out.dump() << '\n';
    return;
  }
  fmt::print("matrix products  bf16 {}/s, f32 {}/s\n", text_flops(bf16), text_flops(f32));
  fmt::print("memory           {:.1f} GB/s updated in place, {:.1f} GB/s read\n",
             1e-9 * memory.update, 1e-9 * memory.read);
}

void add_peak(CLI::App& verb) {
  CLI::App* peak = verb.add_subcommand(
      "peak", "The machine's two limits: matrix products per dtype, memory bandwidth.");
  peak->footer("Example: ingot bench peak");
  auto json = std::make_shared<bool>(false);
  peak->add_flag("--json", *json, "print JSON");
  peak->callback([json] { bench_peak(*json); });
}

void add_gemm(CLI::App& verb) {
  CLI::App* gemm = verb.add_subcommand(
      "gemm", "The matrix products of a recipe's linear layers: forward and both gradients.");
  gemm->footer("Example: ingot bench gemm recipes/gpt2-124m.toml --set dtype=f32");
  auto arguments = std::make_shared<GemmBench>();
  gemm->add_option("recipe", arguments->recipe, "TOML file")->required();
  gemm->add_option("--set", arguments->assignments,
                   "KEY=VALUE over the recipe, any number of times");
  gemm->add_flag("--json", arguments->json, "print JSON");
  gemm->callback([arguments] { bench_gemm(*arguments); });
}

void add_ops(CLI::App& verb) {
  CLI::App* ops = verb.add_subcommand(
      "ops", "Every fused op at GPT-2 124M's sizes, forward and backward, beside its limit.");
  ops->footer("Example: ingot bench ops --only attention --dtype f32");
  auto arguments = std::make_shared<OpsBench>();
  ops->add_option("--only", arguments->only, "ops whose names begin so");
  ops->add_option("--dtype", arguments->dtype, "of the tensors")
      ->check(CLI::IsMember({"bf16", "f32", "f16"}));
  ops->add_flag("--json", arguments->json, "print JSON");
  ops->callback([arguments] { bench_ops(*arguments); });
}

void add_step(CLI::App& verb) {
  CLI::App* step = verb.add_subcommand(
      "step", "Training steps of a recipe on random tokens, and the kernels their time goes to.");
  step->footer(
      "Example: ingot bench step recipes/gpt2-124m.toml --set train.batch=8 --trace step.json\n"
      "chrome://tracing and ui.perfetto.dev open the trace. GB/s counts the tensors a kernel is "
      "handed;\nlimit is the share of the time that the machine needs at least.");
  auto arguments = std::make_shared<StepBench>();
  step->add_option("recipe", arguments->recipe, "TOML file")->required();
  step->add_option("--set", arguments->assignments,
                   "KEY=VALUE over the recipe, any number of times");
  step->add_option("--steps", arguments->steps, "steps to time, after one to warm up")
      ->check(CLI::PositiveNumber);
  step->add_option("--trace", arguments->trace, "write the kernels of one step to this file");
  step->add_flag("--json", arguments->json, "print JSON");
  step->callback([arguments] { bench_step(*arguments); });
}

void add_optim(CLI::App& verb) {
  CLI::App* optim = verb.add_subcommand(
      "optim", "One update of 124 million parameters per rule, beside the memory's bandwidth.");
  optim->footer("Example: ingot bench optim --dtype f32");
  auto arguments = std::make_shared<OptimBench>();
  optim->add_option("--dtype", arguments->dtype, "of the weights; bf16 has f32 masters")
      ->check(CLI::IsMember({"bf16", "f32"}));
  optim->add_option("--only", arguments->only, "kinds to measure (default: all; some take minutes)")
      ->check(CLI::IsMember(rule_names()));
  optim->add_flag("--targets", arguments->targets,
                  "instead: steps and time to fixed losses on four small problems, three learning "
                  "rates to choose from, and a performance profile (AlgoPerf's idea)");
  optim->add_option("--seeds", arguments->seeds, "starts of each run of --targets")
      ->check(CLI::Range(1, 100));
  optim->add_flag("--json", arguments->json, "print JSON");
  optim->callback(
      [arguments] { arguments->targets ? bench_targets(*arguments) : bench_optim(*arguments); });
}

void add_observers(CLI::App& verb) {
  CLI::App* observers = verb.add_subcommand(
      "observers",
      "What log, journal, times and TensorBoard files cost a recipe's step: steps with "
      "and without them, in turns.");
  observers->footer("Example: ingot bench observers recipes/gpt2-124m.toml --steps 20");
  auto arguments = std::make_shared<ObserverBench>();
  observers->add_option("recipe", arguments->recipe, "TOML file")->required();
  observers->add_option("--set", arguments->assignments,
                        "KEY=VALUE over the recipe, any number of times");
  observers->add_option("--steps", arguments->steps, "pairs of steps")->check(CLI::PositiveNumber);
  observers->add_flag("--json", arguments->json, "print JSON");
  observers->callback([arguments] { bench_observers(*arguments); });
}

void add_generate(CLI::App& verb) {
  CLI::App* generate = verb.add_subcommand(
      "generate",
      "Tokens per second of a model, beside the memory's bandwidth and the speed of products.");
  generate->footer("Example: ingot bench generate recipes/gpt2-124m.toml --batch 8");
  auto arguments = std::make_shared<GenerateBench>();
  generate
      ->add_option("model", arguments->model,
                   "a recipe (TOML), whose model has random weights; or a folder or GGUF file")
      ->required();
  generate->add_option("--set", arguments->assignments,
                       "KEY=VALUE over the recipe, any number of times");
  generate->add_option("--batch", arguments->batch, "texts side by side")
      ->check(CLI::PositiveNumber);
  generate->add_option("--prompt", arguments->prompt, "tokens of each prompt")
      ->check(CLI::PositiveNumber);
  generate->add_option("--tokens", arguments->tokens, "tokens written after it")
      ->check(CLI::Range(int64_t{2}, int64_t{1} << 40));
  generate->add_flag("--int8", arguments->int8, "weights of linear maps in 8 bits");
  generate->add_option("--kv", arguments->kv, "keys and values in the model's type or in int8")
      ->check(CLI::IsMember({"model", "int8"}));
  generate->add_flag("--json", arguments->json, "print JSON");
  generate->callback([arguments] { bench_generate(*arguments); });
}

void add_tokenizer(CLI::App& verb) {
  CLI::App* tokenizer =
      verb.add_subcommand("tokenizer", "Encoding with one thread, and training of byte-level BPE.");
  tokenizer->footer("Example: ingot bench tokenizer encode models/qwen3 corpus.txt");
  tokenizer->require_subcommand(1);
  auto arguments = std::make_shared<TokenizerBench>();
  CLI::App* encode = tokenizer->add_subcommand("encode", "A text file, line by line.");
  encode->footer("Example: ingot bench tokenizer encode models/qwen3 corpus.txt --whole");
  encode->add_option("tokenizer", arguments->tokenizer, "file or folder")->required();
  encode->add_option("file", arguments->files, "text file")->required()->expected(1);
  encode->add_flag("--whole", arguments->whole, "the file as one text");
  encode->callback([arguments] { bench_tokenizer_encode(*arguments); });
  CLI::App* train = tokenizer->add_subcommand("train", "BPE on all cores.");
  train->footer("Example: ingot bench tokenizer train corpus.txt --vocab 30000");
  train->add_option("files", arguments->files, "text files")->required();
  train->add_option("--vocab", arguments->vocabulary, "tokens in all")->capture_default_str();
  train->callback([arguments] { bench_tokenizer_train(*arguments); });
  for (CLI::App* part : {encode, train}) {
    part->add_flag("--json", arguments->json, "print JSON");
  }
}

}  // namespace

void add_bench_command(CLI::App& program) {
  CLI::App* verb = program.add_subcommand("bench", "Measure speed beside the machine's limit.");
  verb->require_subcommand(1);
  verb->footer("Example: ingot bench step recipes/gpt2-124m.toml");
  add_peak(*verb);
  add_gemm(*verb);
  add_ops(*verb);
  add_step(*verb);
  add_optim(*verb);
  add_observers(*verb);
  add_generate(*verb);
  add_tokenizer(*verb);
}

}  // namespace ingot
