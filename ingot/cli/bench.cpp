#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <iostream>
#include <nlohmann/json.hpp>

#include "ingot/base/text_size.h"
#include "ingot/cli/commands.h"
#include "ingot/cli/session.h"
#include "ingot/tensor/factories.h"
#include "ingot/train/machine_peak.h"

namespace ingot {
namespace {

struct Arguments {
  std::string recipe;
  std::vector<std::string> assignments;
  int64_t steps = 5;
  bool json = false;
};

// Tokens drawn uniformly: a step's cost does not depend on what they say.
Batch random_batch(int64_t batch, int64_t sequence, int64_t vocab, int64_t position) {
  const Philox random({7, static_cast<uint64_t>(position), site_named("bench")});
  std::vector<int64_t> tokens(static_cast<size_t>(batch * (sequence + 1)));
  for (size_t i = 0; i < tokens.size(); ++i) {
    tokens[i] = static_cast<int64_t>(random.word(i) % static_cast<uint64_t>(vocab));
  }
  const Tensor all = tensor_of(tokens, {batch, sequence + 1});
  Batch out;
  out.ids = empty({batch, sequence}, DType::i64);
  out.labels = empty({batch, sequence}, DType::i64);
  auto ids = out.ids.mutable_values<int64_t>();
  auto labels = out.labels.mutable_values<int64_t>();
  for (int64_t row = 0; row < batch; ++row) {
    const int64_t* from = all.values<int64_t>().data() + row * (sequence + 1);
    std::copy(from, from + sequence, ids.data() + row * sequence);
    std::copy(from + 1, from + sequence + 1, labels.data() + row * sequence);
  }
  return out;
}

void bench_step(const Arguments& arguments) {
  const Recipe recipe = read_recipe(arguments.recipe, arguments.assignments);
  Session session(recipe, cpu_device);
  const int64_t micro = recipe.train.batch / recipe.train.accumulate;
  Training training = session.training([&](int64_t position) {
    return random_batch(micro, recipe.train.sequence, recipe.model.vocab, position);
  });
  std::vector<double> seconds;
  std::vector<double> losses;
  StepReport report;
  for (int64_t step = 0; step <= arguments.steps; ++step) {
    report = train_step(session.state, training);
    losses.push_back(report.loss);
    if (step > 0) {  // the first fills caches: allocator, primitives, page tables
      seconds.push_back(report.seconds);
    }
  }
  std::sort(seconds.begin(), seconds.end());
  const double median = seconds[seconds.size() / 2];
  const auto tokens = static_cast<double>(report.tokens);
  const MemoryStats memory = allocator(cpu_device).stats();
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const double peak = measured_peak_flops(session.dtype());
  const double rate = static_cast<double>(report.flops) / median;
  if (arguments.json) {
    nlohmann::ordered_json out;
    out["parameters"] = session.model().count();
    out["dtype"] = recipe.dtype;
    out["losses"] = losses;
    out["seconds_per_step"] = median;
    out["tokens_per_second"] = tokens / median;
    out["flops_per_second"] = rate;
    out["peak_flops"] = peak;
    out["mfu"] = rate / peak;
    out["peak_mb"] = usage.ru_maxrss / 1024;
    out["allocated_peak_mb"] = memory.peak_total >> 20;
    std::cout << out.dump() << '\n';
    return;
  }
  fmt::print("{} parameters, {} x {} tokens a step, {}\n",
             text_count(static_cast<double>(session.model().count())), recipe.train.batch,
             recipe.train.sequence, recipe.dtype);
  fmt::print("{:.1f} tokens/s ({:.3f} s a step, median of {})\n", tokens / median, median,
             seconds.size());
  fmt::print("{}/s, {:.1f}% of the {}/s of this machine's fastest matrix product\n",
             text_flops(rate), 100 * rate / peak, text_flops(peak));
  fmt::print("peak memory: {} allocated, {} resident\n", text_bytes(memory.peak_total),
             text_bytes(int64_t{usage.ru_maxrss} * 1024));
}

}  // namespace

void add_bench_command(CLI::App& program) {
  CLI::App* verb = program.add_subcommand("bench", "Measure speed beside the machine's limit.");
  verb->require_subcommand(1);
  verb->footer("Example: ingot bench step recipes/gpt2-124m.toml");
  CLI::App* step =
      verb->add_subcommand("step", "Time training steps of a recipe on random tokens.");
  auto arguments = std::make_shared<Arguments>();
  step->add_option("recipe", arguments->recipe, "TOML file")->required();
  step->add_option("--set", arguments->assignments,
                   "KEY=VALUE over the recipe, any number of times");
  step->add_option("--steps", arguments->steps, "steps to time, after one to warm up")
      ->check(CLI::PositiveNumber);
  step->add_flag("--json", arguments->json, "print JSON");
  step->callback([arguments] { bench_step(*arguments); });
}

}  // namespace ingot
