#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "ingot/train/logged_run.h"

namespace ingot {

// One run of a sweep: `ingot train` in a process of its own, so that a trial that fails ends
// nothing but itself.
struct Trial {
  std::filesystem::path folder;
  std::vector<std::string> assignments;  // KEY=VALUE, over the recipe
};

// What the log of a run says of it.
struct TrialLog {
  LoggedRun log;
  bool diverged = false;  // it ended because a number was not finite

  int64_t step() const { return log.steps.empty() ? 0 : log.steps.back().step; }
  // The held-out loss where it was measured at that step, else the mean of the training losses of
  // the tenth of the steps before it; NaN where none is finite or the run did not come so far.
  double loss_at(int64_t step) const;
  // Ended by a number that is not finite, or a tenth above where it began.
  bool diverges() const;
};
TrialLog read_trial(const Trial& trial);

enum class TrialEnd : uint8_t { reached, diverged, interrupted };
// Trains up to `step` of the recipe's steps, from where it is. What it prints goes to a file beside
// its folder. Throws Error with its last line where it fails otherwise.
TrialEnd run_trial(const std::filesystem::path& recipe, const Trial& trial, int64_t step);

}  // namespace ingot
