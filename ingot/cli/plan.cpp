#include <fmt/chrono.h>
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <ctime>
#include <iostream>

#include "ingot/base/cpu_features.h"
#include "ingot/base/json_library.h"
#include "ingot/base/text_size.h"
#include "ingot/cli/commands.h"
#include "ingot/cli/encoder_plan.h"
#include "ingot/cli/run_plan.h"
#include "ingot/train/machine_peak.h"

namespace ingot {
namespace {

using Json = nlohmann::ordered_json;

Json memory_json(const MemoryStats& memory) {
  Json out;
  out["peak"] = memory.peak_total;
  out["on_disk"] = memory.on_disk_peak;
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
  if (memory.on_disk_peak > 0) {
    fmt::print("  and on disk {}", text_bytes(memory.on_disk_peak));
  }
  fmt::print("\n");
}

void print_savings(const std::vector<Saving>& savings) {
  fmt::print("{}", savings.empty() ? "  none of the usual changes makes it fit\n"
                                   : "  with one of these changes it would fit, cheapest first\n");
  for (const Saving& saving : savings) {
    std::string settings;
    for (const std::string& setting : saving.settings) {
      settings += " --set " + setting;
    }
    fmt::print("   {}\n      {}: {}\n", settings, text_bytes(saving.peak), saving.price);
  }
}

void print_time(const PlannedRecipe& recipe, const RunPlan& plan) {
  if (!plan.measured) {
    fmt::print("time\n  not known: `ingot bench step RECIPE` measures this machine's speed\n");
    return;
  }
  const double all = plan.step_seconds() * static_cast<double>(recipe.steps);
  const auto ends = static_cast<std::time_t>(static_cast<double>(std::time(nullptr)) + all);
  std::tm broken{};
  ::localtime_r(&ends, &broken);
  fmt::print(
      "time\n  {:.0f} tokens/s, {} a step, {} in all: begun now it is over {:%Y-%m-%d %H:%M}\n",
      static_cast<double>(plan.step_tokens) / plan.step_seconds(),
      text_duration(plan.step_seconds()), text_duration(all), broken);
  fmt::print(
      "  from steps of {} parameters that took {:.3f} s here, {:.2f} times their arithmetic\n",
      text_count(static_cast<double>(plan.measured->parameters)), plan.measured->step_seconds,
      static_cast<double>(plan.step_flops) / static_cast<double>(plan.measured->step_flops));
}

void print_plan(const PlannedRecipe& recipe, const RunPlan& plan) {
  const auto steps = static_cast<double>(recipe.steps);
  fmt::print("model\n  {} parameters, {} tokens a step, {} steps\n",
             text_count(static_cast<double>(plan.parameters)),
             text_count(static_cast<double>(plan.step_tokens)), recipe.steps);
  fmt::print("memory at its peak\n");
  print_memory("train", plan.train.memory);
  print_memory("evaluate", plan.evaluate.memory);
  const Machine here = machine();
  const bool fits = plan.train.memory.peak_total < here.memory_available_bytes;
  fmt::print("  {} the {} available here\n", fits ? "fits in" : "DOES NOT FIT in",
             text_bytes(here.memory_available_bytes));
  if (!fits) {
    print_savings(cheapest_savings(recipe, here.memory_available_bytes));
  }
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
  print_time(recipe, plan);
  fmt::print("disk\n  {} for {} checkpoints, the one being written among them\n",
             text_bytes(plan.checkpoint_bytes * plan.checkpoints), plan.checkpoints);
  fmt::print("schedule\n{}", recipe.schedule);
}

void print_json(const PlannedRecipe& recipe, const RunPlan& plan) {
  Json out;
  out["parameters"] = plan.parameters;
  out["tokens_per_step"] = plan.step_tokens;
  out["flops_per_step"] = plan.step_flops;
  for (const auto& [name, flops] : plan.kernels) {
    out["flops_by_kernel"][name] = flops;
  }
  out["memory"] = {{"train", memory_json(plan.train.memory)},
                   {"evaluate", memory_json(plan.evaluate.memory)}};
  if (plan.measured) {
    out["step_seconds"] = plan.step_seconds();
    out["tokens_per_second"] = static_cast<double>(plan.step_tokens) / plan.step_seconds();
    out["seconds"] = plan.step_seconds() * static_cast<double>(recipe.steps);
    out["measured_step_flops"] = plan.measured->step_flops;
  }
  out["checkpoint_bytes"] = plan.checkpoint_bytes;
  out["checkpoints"] = plan.checkpoints;
  const int64_t available = machine().memory_available_bytes;
  out["available"] = available;
  out["fits"] = plan.train.memory.peak_total < available;
  if (!out["fits"]) {
    out["savings"] = Json::array();
    for (const Saving& saving : cheapest_savings(recipe, available)) {
      out["savings"].push_back(
          {{"settings", saving.settings}, {"peak", saving.peak}, {"price", saving.price}});
    }
  }
  std::cout << out.dump(2) << '\n';
}

struct Arguments {
  std::string recipe;
  std::vector<std::string> assignments;
  bool json = false;
};

PlannedRecipe planned_recipe(const Arguments& arguments) {
  return is_encoder_recipe(arguments.recipe, arguments.assignments)
             ? planned(read_encoder_recipe(arguments.recipe, arguments.assignments))
             : planned(read_recipe(arguments.recipe, arguments.assignments));
}

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
    const PlannedRecipe recipe = planned_recipe(*arguments);
    const RunPlan plan = recipe.plan();
    if (arguments->json) {
      print_json(recipe, plan);
    } else {
      print_plan(recipe, plan);
    }
  });
}

}  // namespace ingot
