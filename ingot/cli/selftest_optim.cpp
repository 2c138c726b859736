// Every optimizer on the small problems, beside the loss it must reach.
#include "ingot/cli/optim_problems.h"
#include "ingot/cli/selftest.h"
#include "ingot/train/train.h"

namespace ingot {
namespace {

OptimizerRun run(const OptimizerEntry& entry, size_t at) {
  const ProblemTask& task = problem_tasks()[at];
  const Problem problem = task.make(0);
  const OptimizerConfig config = config_of(entry);
  Optimizer optimizer = make_optimizer(config, problem.parameters);
  const bool to_zero = !entry.optimizer.starts_with("schedule_free");
  Training training;
  training.steps = task.steps;
  training.sam = config.sam;
  training.batch = problem.batch;
  training.learning_rate = [&](int64_t step) {
    const double left = 1 - static_cast<double>(step) / static_cast<double>(task.steps);
    return entry.rates[at] * (to_zero ? left : 1);
  };
  training.objective = problem.objective;
  training.with_drawn_labels = problem.with_drawn_labels;
  training.optimizer = &optimizer;
  training.randomness = problem.randomness.get();
  TrainState state;
  train(state, training);
  return {name_of(entry), task.name, entry.rates[at], task.steps, loss_of(problem, optimizer),
          task.target};
}

}  // namespace

std::vector<OptimizerRun> selftest_optim() {
  std::vector<OptimizerRun> runs;
  for (const OptimizerEntry& entry : optimizer_entries()) {
    for (size_t at = 0; at < problem_count; ++at) {
      runs.push_back(run(entry, at));
    }
  }
  return runs;
}

}  // namespace ingot
