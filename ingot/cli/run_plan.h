#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "ingot/cli/recipe.h"
#include "ingot/train/memory_plan.h"

namespace ingot {

// What a recipe takes, found by running it on the meta device.
struct RunPlan {
  Plan train;
  Plan evaluate;
  int64_t parameters = 0;
  int64_t step_flops = 0;
  int64_t step_tokens = 0;
  int64_t checkpoint_bytes = 0;
  int64_t checkpoints = 0;  // that are on disk at most at a time, the one being written too
  std::vector<std::pair<std::string, int64_t>> kernels;  // that compute, and their FLOPs in a step
};

// Building everything, two steps (the second meets the state that the first left), and an
// evaluation batch.
RunPlan plan_run(const Recipe& recipe);

}  // namespace ingot
