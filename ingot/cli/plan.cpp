#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>

#include "ingot/base/cpu_features.h"
#include "ingot/base/text_size.h"
#include "ingot/cli/commands.h"
#include "ingot/cli/session.h"
#include "ingot/device/profile.h"
#include "ingot/train/evaluate.h"
#include "ingot/train/machine_peak.h"
#include "ingot/train/memory_plan.h"

namespace ingot {
namespace {

using Json = nlohmann::ordered_json;

struct RunPlan {
  Plan train;
  Plan evaluate;
  int64_t parameters = 0;
  int64_t step_flops = 0;
  int64_t step_tokens = 0;
  int64_t checkpoint_bytes = 0;
  std::vector<std::pair<std::string, int64_t>> kernels;  // that compute, and their FLOPs in a step
};

// The FLOPs of each kernel in a recording, most first.
std::vector<std::pair<std::string, int64_t>> flops_by_kernel(const Recording& recording) {
  std::map<std::string, int64_t> sums;
  for (const KernelCall& call : recording.calls()) {
    sums[call.name] += call.flops;
  }
  std::vector<std::pair<std::string, int64_t>> out(sums.begin(), sums.end());
  std::erase_if(out, [](const auto& entry) { return entry.second == 0; });
  std::sort(out.begin(), out.end(),
            [](const auto& a, const auto& b) { return a.second > b.second; });
  return out;
}

// The run itself on the meta device: building everything, two steps (the second meets the state the
// first left), and an evaluation batch.
RunPlan plan_run(const Recipe& recipe) {
  RunPlan out;
  std::unique_ptr<Session> session;
  const int64_t rows = run_kind(recipe.kind).rows;
  const int64_t micro = rows * recipe.train.batch / recipe.train.accumulate;
  out.train = plan_of([&] {
    session = std::make_unique<Session>(recipe, meta_device);
    Training training =
        session->training([&](int64_t) { return shape_batch(micro, recipe.train.sequence); });
    training.micro_batches = nullptr;  // a whole step, not the first of the batch's warm-up
    {
      const Recording recording;
      out.step_flops = train_step(session->state, training).flops;
      out.kernels = flops_by_kernel(recording);
    }
    train_step(session->state, training);
  });
  out.evaluate = plan_of([&] {
    const EvaluatedWeights shown(session->optimizer());
    evaluate(
        session->objective(), 1,
        [&](int64_t) { return shape_batch(rows * recipe.evaluate.batch, recipe.train.sequence); },
        *session->model().randomness());
  });
  out.parameters = session->model().count();
  out.step_tokens = recipe.train.batch * recipe.train.sequence;
  out.checkpoint_bytes =
      session->optimizer().parameters().bytes() + session->optimizer().state().bytes();
  return out;
}

Json memory_json(const MemoryStats& memory) {
  Json out;
  out["peak"] = memory.peak_total;
  for (int64_t i = 0; i < purposes; ++i) {
    out[std::string(name(static_cast<Purpose>(i)))] = memory.at_peak[static_cast<size_t>(i)];
  }
  return out;
}

void print_memory(const char* title, const MemoryStats& memory) {
  fmt::print("  {:<12} {:>10}", title, text_bytes(memory.peak_total));
  for (int64_t i = 0; i < purposes; ++i) {
    const int64_t bytes = memory.at_peak[static_cast<size_t>(i)];
    if (bytes > 0) {
      fmt::print("  {} {}", name(static_cast<Purpose>(i)), text_bytes(bytes));
    }
  }
  fmt::print("\n");
}

void print_plan(const Recipe& recipe, const RunPlan& plan) {
  const auto steps = static_cast<double>(recipe.train.steps);
  fmt::print("model\n  {} parameters, {} tokens a step, {} steps\n",
             text_count(static_cast<double>(plan.parameters)),
             text_count(static_cast<double>(plan.step_tokens)), recipe.train.steps);
  fmt::print("memory at its peak\n");
  print_memory("train", plan.train.memory);
  print_memory("evaluate", plan.evaluate.memory);
  const Machine here = machine();
  const bool fits = plan.train.memory.peak_total < here.memory_available_bytes;
  fmt::print("  {} the {} available here\n", fits ? "fits in" : "DOES NOT FIT in",
             text_bytes(here.memory_available_bytes));
  fmt::print("arithmetic\n  {} a step, {} in all\n",
             text_flops(static_cast<double>(plan.step_flops)),
             text_flops(static_cast<double>(plan.step_flops) * steps));
  for (const auto& [name, flops] : plan.kernels) {
    fmt::print("  {:>5.1f}%  {}\n",
               100 * static_cast<double>(flops) / static_cast<double>(plan.step_flops), name);
  }
  const double peak = measured_peak_flops(*dtype_named(recipe.dtype));
  fmt::print("  {} at this machine's measured {}/s ({}), the least it can take\n",
             text_duration(static_cast<double>(plan.step_flops) * steps / peak), text_flops(peak),
             recipe.dtype);
  fmt::print("disk\n  {} for {} checkpoints (one more while saving)\n",
             text_bytes(plan.checkpoint_bytes * (recipe.checkpoint.keep + 1)),
             recipe.checkpoint.keep);
  fmt::print("schedule\n{}",
             drawn(recipe.schedule.schedule, recipe.optim.learning_rate, schedule_total(recipe)));
}

void print_json(const RunPlan& plan) {
  Json out;
  out["parameters"] = plan.parameters;
  out["tokens_per_step"] = plan.step_tokens;
  out["flops_per_step"] = plan.step_flops;
  for (const auto& [name, flops] : plan.kernels) {
    out["flops_by_kernel"][name] = flops;
  }
  out["memory"] = {{"train", memory_json(plan.train.memory)},
                   {"evaluate", memory_json(plan.evaluate.memory)}};
  out["checkpoint_bytes"] = plan.checkpoint_bytes;
  std::cout << out.dump(2) << '\n';
}

struct Arguments {
  std::string recipe;
  std::vector<std::string> assignments;
  bool json = false;
};

}  // namespace

void add_plan_command(CLI::App& program) {
  CLI::App* verb = program.add_subcommand("plan",
                                          "What a recipe will take before it runs: peak memory by "
                                          "purpose, arithmetic, disk, schedule.");
  verb->footer("Example: ingot plan recipes/kjv.toml --set train.batch=64");
  auto arguments = std::make_shared<Arguments>();
  verb->add_option("recipe", arguments->recipe, "TOML file")->required();
  verb->add_option("--set", arguments->assignments,
                   "KEY=VALUE over the recipe, any number of times");
  verb->add_flag("--json", arguments->json, "print JSON");
  verb->callback([arguments] {
    const Recipe recipe = read_recipe(arguments->recipe, arguments->assignments);
    const RunPlan plan = plan_run(recipe);
    if (arguments->json) {
      print_json(plan);
    } else {
      print_plan(recipe, plan);
    }
  });
}

}  // namespace ingot
