// ingot bench optim --targets: which optimizer comes to a fixed loss first. The idea is AlgoPerf's
// (Dahl et al. 2023, "Benchmarking neural network training algorithms", arXiv:2306.07179): fixed
// workloads, a small budget to choose settings from, several starts, and performance profiles
// (Dolan and Moré 2002) over the workloads; here they are small enough for seconds.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iostream>

#include "ingot/base/error.h"
#include "ingot/base/json_library.h"
#include "ingot/cli/bench.h"
#include "ingot/cli/optim_problems.h"

namespace ingot {
namespace {

constexpr std::array<double, 3> rate_factors = {0.5, 1, 2};  // the budget: times the tuned rate
constexpr std::array<double, 5> within = {1, 1.25, 1.5, 2, 4};
constexpr int64_t look_every = 5;  // steps between measurements of the loss

struct Reached {
  double steps = HUGE_VAL;  // infinite where the target was missed
  double seconds = HUGE_VAL;
};

// A run until its loss is at the target, over at most the task's steps.
Reached run_to_target(const OptimizerEntry& entry, size_t at, double rate, uint64_t seed) {
  const ProblemTask& task = problem_tasks()[at];
  const Problem problem = task.make(seed);
  Optimizer optimizer = make_optimizer(config_of(entry), problem.parameters);
  Training training = training_of(problem, at, entry, rate, optimizer);
  TrainState state;
  double seconds = 0;
  try {
    while (state.step < task.steps) {
      seconds += seconds_of([&] { train_step(state, training); });
      const bool look = state.step % look_every == 0 || state.step == task.steps;
      if (look && loss_of(problem, optimizer) <= task.target) {
        return {static_cast<double>(state.step), seconds};
      }
    }
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::numeric) {
      throw;
    }
  }
  return {};
}

// The median over starts, at the rate of the budget for which that is least.
Reached best_of_budget(const OptimizerEntry& entry, size_t at, int64_t seeds) {
  Reached best;
  for (const double factor : rate_factors) {
    std::vector<double> steps, seconds;
    for (int64_t seed = 0; seed < seeds; ++seed) {
      const Reached one =
          run_to_target(entry, at, factor * entry.rates[at], static_cast<uint64_t>(seed));
      steps.push_back(one.steps);
      seconds.push_back(one.seconds);
    }
    const Reached middle = {median(steps), median(seconds)};
    if (middle.steps < best.steps) {
      best = middle;
    }
  }
  return best;
}

struct Row {
  std::string name;
  std::array<Reached, problem_count> reached;
  std::array<double, within.size()> profile{};  // share of problems within so many times the best
  double score = 0;                             // mean of the profile
};

void fill_profiles(std::vector<Row>& rows) {
  for (size_t at = 0; at < problem_count; ++at) {
    double best = HUGE_VAL;
    for (const Row& row : rows) {
      best = std::min(best, row.reached[at].steps);
    }
    for (Row& row : rows) {
      for (size_t i = 0; i < within.size(); ++i) {
        const bool there =
            std::isfinite(row.reached[at].steps) && row.reached[at].steps <= within[i] * best;
        row.profile[i] += there ? 1 / static_cast<double>(problem_count) : 0;
      }
    }
  }
  for (Row& row : rows) {
    for (const double share : row.profile) {
      row.score += share / static_cast<double>(within.size());
    }
  }
  std::ranges::stable_sort(rows, [](const Row& a, const Row& b) { return a.score > b.score; });
}

std::string steps_text(double steps) {
  return std::isfinite(steps) ? fmt::format("{:.0f}", steps) : "-";
}

void print_text(const std::vector<Row>& rows, int64_t seeds) {
  fmt::print(
      "steps to the target (median of {} starts, best of {} rates), then the share of the "
      "problems\nreached within so many times the fewest steps of all\n{:<22}",
      seeds, rate_factors.size(), "optimizer");
  for (const ProblemTask& task : problem_tasks()) {
    fmt::print(" {:>10}", task.name);
  }
  for (const double times : within) {
    fmt::print(" {:>6}", fmt::format("x{}", times));
  }
  fmt::print("\n");
  for (const Row& row : rows) {
    fmt::print("{:<22}", row.name);
    for (const Reached& one : row.reached) {
      fmt::print(" {:>10}", steps_text(one.steps));
    }
    for (const double share : row.profile) {
      fmt::print(" {:>6.2f}", share);
    }
    fmt::print("\n");
  }
}

void print_json(const std::vector<Row>& rows, int64_t seeds) {
  nlohmann::ordered_json out;
  out["seeds"] = seeds;
  out["within"] = within;
  for (const Row& row : rows) {
    nlohmann::ordered_json one = {{"optimizer", row.name}, {"score", row.score}};
    for (size_t at = 0; at < problem_count; ++at) {
      const bool there = std::isfinite(row.reached[at].steps);
      one["problems"].push_back({{"problem", problem_tasks()[at].name},
                                 {"steps", there ? nlohmann::ordered_json(row.reached[at].steps)
                                                 : nlohmann::ordered_json()},
                                 {"seconds", there ? nlohmann::ordered_json(row.reached[at].seconds)
                                                   : nlohmann::ordered_json()}});
    }
    one["profile"] = row.profile;
    out["optimizers"].push_back(std::move(one));
  }
  std::cout << out.dump() << '\n';
}

}  // namespace

void bench_targets(const OptimBench& arguments) {
  std::vector<Row> rows;
  for (const OptimizerEntry& entry : optimizer_entries()) {
    const auto& only = arguments.only;
    if (!only.empty() && std::ranges::find(only, entry.optimizer) == only.end()) {
      continue;
    }
    Row row;
    row.name = name_of(entry);
    for (size_t at = 0; at < problem_count; ++at) {
      row.reached[at] = best_of_budget(entry, at, arguments.seeds);
    }
    rows.push_back(std::move(row));
  }
  fill_profiles(rows);
  arguments.json ? print_json(rows, arguments.seeds) : print_text(rows, arguments.seeds);
}

}  // namespace ingot
