// Every optimizer on the small problems, beside the loss it must reach.
#include "ingot/cli/optim_problems.h"
#include "ingot/cli/selftest.h"

namespace ingot {
namespace {

OptimizerRun best_run(const OptimizerEntry& entry, size_t at) {
  const ProblemTask& task = problem_tasks()[at];
  const Problem problem = task.make(0);
  Optimizer optimizer = make_optimizer(config_of(entry), problem.parameters);
  Training training = training_of(problem, at, entry, entry.rates[at], optimizer);
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
      runs.push_back(best_run(entry, at));
    }
  }
  return runs;
}

}  // namespace ingot
