// ingot bench observers: what watching a run costs its steps.
#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <iostream>

#include "ingot/base/files.h"
#include "ingot/base/json_library.h"
#include "ingot/cli/bench.h"
#include "ingot/cli/session.h"
#include "ingot/train/journal.h"
#include "ingot/train/run_log.h"
#include "ingot/train/tensorboard.h"
#include "ingot/train/time_ledger.h"

namespace ingot {
namespace {

// A folder that is gone at the end of the scope.
class Scratch {
 public:
  Scratch() : path_(std::filesystem::temp_directory_path() / "ingot-bench-XXXXXX") {
    std::string name = path_.string();
    check(::mkdtemp(name.data()) != nullptr, ErrorKind::io, name, ": cannot be made");
    path_ = name;
  }
  ~Scratch() {
    std::error_code none;
    std::filesystem::remove_all(path_, none);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

// The last step's state to observers, and how long that took.
double observed(const TrainState& state, const StepReport& report,
                const std::vector<Observer*>& observers) {
  return seconds_of([&] {
    for (Observer* observer : observers) {
      observer->after_step(state, report);
    }
  });
}

}  // namespace

void bench_observers(const ObserverBench& arguments) {
  const Recipe recipe = read_recipe(arguments.recipe, arguments.assignments);
  const Scratch scratch;
  Session session(recipe, cpu_device);
  Training training = random_training(session);
  RunLog log(scratch.path() / "log.jsonl", 0, 1e12);
  Journal journal(scratch.path() / "journal.jsonl", 0, recipe.seed);
  TimeLedger ledger(scratch.path() / "times.jsonl", 0, now_seconds());
  Tensorboard events(scratch.path() / "tensorboard", 0);
  train_step(session.state, training);  // fills caches
  std::vector<double> alone, watched, watching;
  for (int64_t pair = 0; pair < arguments.steps; ++pair) {
    alone.push_back(seconds_of([&] { train_step(session.state, training); }));
    StepReport report;
    const double step = seconds_of([&] { report = train_step(session.state, training); });
    watching.push_back(observed(session.state, report, {&log, &journal, &ledger, &events}));
    watched.push_back(step + watching.back());
  }
  const double base = median(alone);
  const double share = median(watching) / base;
  const double difference = median(watched) / base - 1;
  if (arguments.json) {
    const nlohmann::ordered_json out = {{"seconds_per_step", base},
                                        {"seconds_per_watched_step", median(watched)},
                                        {"seconds_of_observers", median(watching)},
                                        {"share", share},
                                        {"difference", difference}};
    std::cout << out.dump() << '\n';
    return;
  }
  fmt::print("{:.4f} s a step, {:.4f} s watched (medians of {} each, in turns: {:+.2f} %)\n", base,
             median(watched), arguments.steps, 100 * difference);
  fmt::print("the observers themselves: {:.1f} us a step, {:.3f} % of it\n", 1e6 * median(watching),
             100 * share);
}

}  // namespace ingot
