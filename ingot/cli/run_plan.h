#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ingot/cli/recipe.h"
#include "ingot/cli/speed_profile.h"
#include "ingot/train/memory_plan.h"
#include "ingot/train/train.h"

namespace ingot {

// What a recipe takes, found by running it on the meta device.
struct RunPlan {
  Plan train;
  Plan evaluate;
  int64_t parameters = 0;
  int64_t step_flops = 0;
  int64_t step_tokens = 0;
  // Predicted; 0 where no speed was measured.
  double step_seconds() const { return measured ? measured->seconds_of(step_flops) : 0; }
  int64_t checkpoint_bytes = 0;
  int64_t checkpoints = 0;  // that are on disk at most at a time, the one being written too
  std::optional<MeasuredSpeed> measured;  // what times are predicted from (speed_profile.h)
  std::vector<std::pair<std::string, int64_t>> kernels;  // that compute, and their FLOPs in a step
};

// A run as planning goes through it: everything on the meta device.
struct Rehearsal {
  TrainState& state;
  Optimizer& optimizer;
  Training training;
  std::function<void()> evaluate;  // one batch
  int64_t parameters = 0;
  int64_t step_tokens = 0;
};
// `build`, two steps (the second meets the state that the first left), and an evaluation batch.
RunPlan rehearsed(const std::function<Rehearsal()>& build, const CheckpointConfig& saving,
                  int64_t steps);
RunPlan plan_run(const Recipe& recipe);

// A recipe of any kind, as planning sees it.
struct PlannedRecipe {
  int64_t steps = 0;
  int64_t accumulate = 1;
  bool divides = true;  // more micro-batches leave the task as it is
  bool recompute = false;
  std::string dtype;
  std::string schedule;  // the learning rate over the run, drawn
  std::function<RunPlan()> plan;
  // The plan of it with settings over it; absent where they contradict it.
  std::function<std::optional<RunPlan>(const std::vector<std::string>& settings)> with;
};
PlannedRecipe planned(const Recipe& recipe);

// The least number of micro-batches, from train.accumulate up, with which training stays within
// `bytes`. Throws Error(config) with the least that it takes where none does.
int64_t accumulate_that_fits(const Recipe& recipe, int64_t bytes);

// A change to a recipe that makes it take less memory.
struct Saving {
  std::vector<std::string> settings;  // "train.accumulate=4"
  std::string price;
  int64_t peak = 0;  // bytes, of training
};

// At most three changes with which training stays within `bytes`, the cheapest first; empty where
// none of those tried does.
std::vector<Saving> cheapest_savings(const PlannedRecipe& recipe, int64_t bytes);

}  // namespace ingot
