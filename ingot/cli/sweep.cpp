#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cmath>
#include <iostream>
#include <optional>

#include "ingot/base/files.h"
#include "ingot/base/hash.h"
#include "ingot/base/json_library.h"
#include "ingot/base/log.h"
#include "ingot/base/signals.h"
#include "ingot/cli/commands.h"
#include "ingot/cli/encoder_recipe.h"
#include "ingot/cli/number_checks.h"
#include "ingot/cli/recipe.h"
#include "ingot/cli/svg_curve.h"
#include "ingot/cli/sweep_trial.h"
#include "ingot/scaling/search.h"

// ingot sweep: trains a recipe with many values of some of its keys, and says which are best.
namespace ingot {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

struct Arguments {
  fs::path recipe;
  std::vector<std::string> vary;
  std::vector<std::string> assignments;
  std::string method = "grid";
  int64_t points = 7;
  int64_t trials = 16;
  int64_t rungs = 3;
  int64_t reduction = 3;
  uint64_t seed = 1;
  fs::path folder;
  bool json = false;
};

struct Sweep {
  std::vector<SearchAxis> axes;
  std::vector<Point> points;
  std::vector<Trial> trials;   // one a point
  std::vector<int64_t> rungs;  // steps of each
  fs::path folder;
};

std::vector<std::string> assignments_of(const Sweep& sweep, const Point& point,
                                        const Arguments& arguments) {
  std::vector<std::string> out = arguments.assignments;
  for (size_t i = 0; i < sweep.axes.size(); ++i) {
    out.push_back(sweep.axes[i].key + "=" + point[i]);
  }
  return out;
}

int64_t steps_of(const fs::path& recipe, const std::vector<std::string>& assignments) {
  return is_encoder_recipe(recipe, assignments)
             ? read_encoder_recipe(recipe, assignments).train.steps
             : read_recipe(recipe, assignments).train.steps;
}

// Every recipe is read before the first is trained: a wrong key costs no hour.
Sweep planned(const Arguments& arguments) {
  Sweep sweep;
  sweep.folder = arguments.folder.empty()
                     ? fs::path("runs") / (arguments.recipe.stem().string() + "-sweep")
                     : arguments.folder;
  for (const std::string& text : arguments.vary) {
    sweep.axes.push_back(search_axis(text));
  }
  sweep.points = arguments.method == "grid"
                     ? grid_points(sweep.axes, arguments.points)
                     : random_points(sweep.axes, arguments.trials, arguments.seed);
  int64_t steps = 0;
  for (size_t i = 0; i < sweep.points.size(); ++i) {
    Trial trial{sweep.folder / fmt::format("trial-{:03}", i),
                assignments_of(sweep, sweep.points[i], arguments)};
    const int64_t its_steps = steps_of(arguments.recipe, trial.assignments);
    check(steps == 0 || steps == its_steps, ErrorKind::config,
          "sweep: trials of different train.steps cannot be compared; leave it out of --vary");
    steps = its_steps;
    sweep.trials.push_back(std::move(trial));
  }
  const auto rungs = static_cast<size_t>(arguments.method == "asha" ? arguments.rungs : 1);
  for (size_t rung = 0; rung < rungs; ++rung) {
    sweep.rungs.push_back(steps_of_rung(steps, rung, rungs, arguments.reduction));
  }
  return sweep;
}

// What the folder was begun with: the same sweep goes on in it, another is refused.
void open_folder(const Sweep& sweep, const Arguments& arguments) {
  Json now;
  now["recipe"] = arguments.recipe.string();
  now["recipe_hash"] = hash_file(arguments.recipe);
  now["vary"] = arguments.vary;
  now["set"] = arguments.assignments;
  now["method"] = arguments.method;
  now["trials"] = sweep.trials.size();
  now["rungs"] = sweep.rungs;
  now["seed"] = arguments.seed;
  const fs::path file = sweep.folder / "sweep.json";
  if (!file_exists(file)) {
    make_directories(sweep.folder);
    write_file(file, now.dump(2) + "\n");
    return;
  }
  const Json before = Json::parse(read_file(file), nullptr, false);
  for (const auto& [key, value] : now.items()) {
    check(before.is_object() && before.contains(key) && before[key] == value, ErrorKind::config,
          file.string(), ": another sweep is in this folder: its ", key, " is ",
          before.is_object() && before.contains(key) ? before[key].dump() : "not there", ", not ",
          value.dump(), "; give another --out");
  }
}

std::string point_text(const Sweep& sweep, size_t trial) {
  std::string out;
  for (size_t i = 0; i < sweep.axes.size(); ++i) {
    out += concat(i == 0 ? "" : ", ", sweep.axes[i].key, " ", sweep.points[trial][i]);
  }
  return out;
}

// The losses of a trial at the rungs it has reached; NaN at the one where it diverged.
std::vector<double> scores_of(const Sweep& sweep, const TrialLog& log) {
  std::vector<double> out;
  for (const int64_t step : sweep.rungs) {
    if (log.step() < step) {
      break;
    }
    out.push_back(log.loss_at(step));
  }
  if (log.diverged && out.size() < sweep.rungs.size()) {
    out.push_back(std::nan(""));
  }
  return out;
}

// Trains what is to be trained; false where it was interrupted.
bool run_trials(const Sweep& sweep, const Arguments& arguments) {
  const StopSignals signals;
  std::vector<std::vector<double>> scores;
  for (const Trial& trial : sweep.trials) {
    scores.push_back(scores_of(sweep, read_trial(trial)));
  }
  while (const auto next = next_promotion(scores, sweep.rungs.size(), arguments.reduction)) {
    const int64_t step = sweep.rungs[next->rung];
    const TrialEnd end = run_trial(arguments.recipe, sweep.trials[next->trial], step);
    if (end == TrialEnd::interrupted || stop_requested()) {
      return false;
    }
    scores[next->trial] = scores_of(sweep, read_trial(sweep.trials[next->trial]));
    if (end == TrialEnd::diverged && scores[next->trial].size() <= next->rung) {
      scores[next->trial].push_back(std::nan(""));  // before its first line
    }
    log_info(fmt::format("trial {}/{}: {}: {} steps, loss {:.4f}", next->trial + 1,
                         sweep.trials.size(), point_text(sweep, next->trial), step,
                         scores[next->trial].back()));
  }
  return true;
}

struct Result {
  size_t trial = 0;
  int64_t step = 0;
  double loss = 0;
  bool diverges = false;
};

// The furthest first, of those the least loss.
std::vector<Result> results_of(const Sweep& sweep) {
  std::vector<Result> out;
  for (size_t i = 0; i < sweep.trials.size(); ++i) {
    const TrialLog log = read_trial(sweep.trials[i]);
    const bool diverges = log.diverges() || log.step() == 0;
    out.push_back({i, log.step(), log.diverged ? std::nan("") : log.loss_at(log.step()), diverges});
  }
  std::stable_sort(out.begin(), out.end(), [](const Result& a, const Result& b) {
    const auto rank = [](const Result& r) {
      return std::tuple(std::isnan(r.loss), -r.step, std::isnan(r.loss) ? 0 : r.loss);
    };
    return rank(a) < rank(b);
  });
  return out;
}

std::optional<double> number(const std::string& text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() ? std::optional(value)
                                                                  : std::nullopt;
}

// Loss against the value, of trials that came as far as the best, where one numeric key is varied.
std::vector<std::pair<double, double>> curve_of(const Sweep& sweep,
                                                const std::vector<Result>& results) {
  std::vector<std::pair<double, double>> out;
  if (sweep.axes.size() != 1) {
    return out;
  }
  for (const Result& result : results) {
    const auto x = number(sweep.points[result.trial][0]);
    if (!x) {
      return {};
    }
    if (result.step == results.front().step && !result.diverges) {
      out.emplace_back(*x, result.loss);
    }
  }
  std::sort(out.begin(), out.end());
  return out;
}

constexpr int64_t bar_width = 30;

// A line a trial, in the order of the varied value where there is one, else the best first; a bar
// from the least loss to the largest of those that do not diverge.
void print_table(const Sweep& sweep, std::vector<Result> results, size_t best) {
  double low = HUGE_VAL;
  double high = -HUGE_VAL;
  for (const Result& result : results) {
    if (!result.diverges) {
      low = std::min(low, result.loss);
      high = std::max(high, result.loss);
    }
  }
  if (sweep.axes.size() == 1) {
    std::sort(results.begin(), results.end(), [&](const Result& a, const Result& b) {
      const auto of_a = number(sweep.points[a.trial][0]);
      const auto of_b = number(sweep.points[b.trial][0]);
      return of_a && of_b ? *of_a < *of_b : a.trial < b.trial;
    });
  }
  for (const Result& result : results) {
    std::string shape = "diverges";
    if (!result.diverges) {
      const double share = (result.loss - low) / std::max(high - low, 1e-12);
      shape.clear();
      for (int64_t i = 0; i <= std::llround(share * bar_width); ++i) {
        shape += "█";
      }
    }
    std::cout << fmt::format("{:<30} {:>7} steps {:>9.4f}  {}{}\n", point_text(sweep, result.trial),
                             result.step, result.loss, shape,
                             result.trial == best ? "  ← best" : "");
  }
}

void print_json(const Sweep& sweep, const std::vector<Result>& results,
                std::optional<double> recommended) {
  Json out;
  out["folder"] = sweep.folder.string();
  for (const Result& result : results) {
    Json one;
    for (size_t i = 0; i < sweep.axes.size(); ++i) {
      one["set"][sweep.axes[i].key] = sweep.points[result.trial][i];
    }
    one["run"] = sweep.trials[result.trial].folder.string();
    one["steps"] = result.step;
    one["loss"] = std::isfinite(result.loss) ? Json(result.loss) : Json(nullptr);
    one["diverges"] = result.diverges;
    out["trials"].push_back(std::move(one));
  }
  out["recommended"] = recommended ? Json(*recommended) : Json(nullptr);
  std::cout << out.dump(2) << '\n';
}

void sweep(const Arguments& arguments) {
  check(!arguments.vary.empty(), ErrorKind::config,
        "sweep: nothing to vary; give --vary optim.lr=1e-4..1e-1");
  const Sweep sweep = planned(arguments);
  open_folder(sweep, arguments);
  if (!run_trials(sweep, arguments)) {
    log_info("stopped; the same command goes on");
    throw CLI::RuntimeError(130);
  }
  const std::vector<Result> results = results_of(sweep);
  const Result& best = results.front();
  check(!best.diverges, ErrorKind::numeric, sweep.folder.string(), ": all ", sweep.trials.size(),
        " trials diverge; try smaller learning rates");
  const fs::path recipe = sweep.folder / "best.toml";
  write_file(recipe, read_file(sweep.trials[best.trial].folder / "recipe.toml"));
  const auto curve = curve_of(sweep, results);
  const std::optional<double> recommended = least_at(curve);
  if (curve.size() > 1) {
    std::vector<std::pair<double, double>> points;
    for (const auto& [x, loss] : curve) {
      points.emplace_back(sweep.axes[0].logarithmic ? std::log10(x) : x, loss);
    }
    const std::string x_name = (sweep.axes[0].logarithmic ? "log10 " : "") + sweep.axes[0].key;
    write_file(sweep.folder / "sweep.svg",
               svg_curves("loss, nats a token", x_name, {{"after training", points}}));
  }
  if (arguments.json) {
    print_json(sweep, results, recommended);
    return;
  }
  print_table(sweep, results, best.trial);
  int64_t trained = 0;
  for (const Result& result : results) {
    trained += result.step;
  }
  std::cout << fmt::format("best: {}; {} of {} steps were trained\n", point_text(sweep, best.trial),
                           trained, sweep.rungs.back() * static_cast<int64_t>(sweep.trials.size()));
  if (recommended) {
    std::cout << fmt::format(
        "recommended: {} {:.3g}, where a parabola through the best and its "
        "neighbours is least\n",
        sweep.axes[0].key, *recommended);
  }
  std::cout << "its recipe: " << recipe.string() << "\n";
}

}  // namespace

void add_sweep_command(CLI::App& program) {
  CLI::App* verb = program.add_subcommand(
      "sweep", "Train a recipe with many values of some keys; find the best.");
  auto arguments = std::make_shared<Arguments>();
  verb->add_option("recipe", arguments->recipe, "TOML file")->required();
  verb->add_option(
      "--vary", arguments->vary,
      "KEY=A,B,C or KEY=LOW..HIGH (of equal ratios where LOW > 0); any number of times");
  verb->add_option("--set", arguments->assignments, "KEY=VALUE over the recipe, in all trials");
  verb->add_option("--method", arguments->method,
                   "grid: all combinations; random; asha: random, the worse ones stopped early")
      ->check(CLI::IsMember({"grid", "random", "asha"}))
      ->capture_default_str();
  verb->add_option("--points", arguments->points, "values of each range in a grid")
      ->check(CLI::Range(2, 1000))
      ->capture_default_str();
  verb->add_option("--trials", arguments->trials, "of random and asha")
      ->check(counting_number())
      ->capture_default_str();
  verb->add_option("--rungs", arguments->rungs, "asha: how often trials are compared")
      ->check(CLI::Range(2, 20))
      ->capture_default_str();
  verb->add_option("--reduction", arguments->reduction,
                   "asha: of so many trials one goes on to so many times the steps")
      ->check(CLI::Range(2, 100))
      ->capture_default_str();
  verb->add_option("--seed", arguments->seed, "of random and asha")->capture_default_str();
  verb->add_option("--out", arguments->folder,
                   "folder (default: runs/ and the recipe's name, -sweep)");
  verb->add_flag("--json", arguments->json, "print JSON");
  verb->footer(
      "Trials are runs in the folder, with the held-out loss of their last step (or the mean "
      "training loss of\nits last tenth). Ctrl-C saves; the same command goes on.\n"
      "Example: ingot sweep recipes/kjv.toml --vary optim.lr=1e-4..1e-1 --set train.steps=200");
  verb->callback([arguments] { sweep(*arguments); });
}

}  // namespace ingot
