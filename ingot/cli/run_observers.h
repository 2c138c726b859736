#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "ingot/cli/run_plan.h"
#include "ingot/cli/run_tracker.h"
#include "ingot/cli/validator.h"
#include "ingot/train/console.h"
#include "ingot/train/journal.h"
#include "ingot/train/tensorboard.h"
#include "ingot/train/time_ledger.h"

namespace ingot {

// Everything that watches a run. After each step the log comes first, then the saver, and
// evaluation after it: a failing evaluation loses nothing.
class RunObservers {
 public:
  // `began`: when the process did. `parent`: the checkpoint that the run branched off.
  RunObservers(Session& session, const RunData& data, const RunFolder& folder, Saver& saver,
               double peak_flops, const std::string& parent, double began);

  // Puts them into a training: they are told of its steps, and may end it, or take it back.
  void join(Training& training);

  Validator& validator() { return *validator_; }
  const RunLog& log() const { return *log_; }
  // After the last step: the terminal's line is ended.
  void finish() { console_->finish(); }
  // The run is over, as "finished", "stopped", "failed" or "diverged".
  void end(const std::string& status);
  // Writes report.md, and returns the line of plan against actual.
  std::string report(int64_t peak_memory);

 private:
  void rewound(const TrainState& state, const std::string& event);

  Session& session_;
  const RunFolder& folder_;
  Saver& saver_;
  double peak_flops_;
  std::unique_ptr<RunLog> log_;
  std::unique_ptr<Journal> journal_;
  std::unique_ptr<TimeLedger> ledger_;
  std::unique_ptr<Tensorboard> events_;  // where the recipe wants it
  std::unique_ptr<RunTracker> tracker_;  // always; without a store where the recipe wants none
  std::unique_ptr<Console> console_;
  std::unique_ptr<Validator> validator_;
  std::unique_ptr<Timed> saving_, evaluating_;
};

}  // namespace ingot
