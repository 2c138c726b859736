#pragma once

#include <memory>
#include <string>
#include <vector>

#include "ingot/cli/run_folder.h"
#include "ingot/cli/run_store.h"
#include "ingot/train/evaluate.h"
#include "ingot/train/train.h"

namespace ingot {

// What a run is, as the store keeps it.
struct TrackedRun {
  std::string recipe;  // as TOML
  std::string data_hash;
  std::string parent;  // the checkpoint or model that it began from
  int64_t parameters = 0;
  int64_t steps = 0;
  bool store = true;  // false: the record is kept in memory alone
};

// Keeps the record of a run in the store beside its folder. A store that cannot be used is a
// warning: the run goes on without.
class RunTracker : public Observer {
 public:
  RunTracker(const RunFolder& folder, const TrackedRun& run, const TrainState& state);

  void after_step(const TrainState& state, const StepReport& report) override;
  void evaluated(int64_t step, const Evaluation& evaluation);
  // "finished", "stopped", "failed" or "diverged"; with the hashes of what is in the folder.
  void end(const std::string& status);

  const RunRecord& record() const { return record_; }

 private:
  template <class F>
  void with_store(F&& f);

  const RunFolder& folder_;
  RunRecord record_;
  bool usable_ = true;
  std::unique_ptr<RunStore> store_;
};

// The commit that the repository around the current folder is at; empty where there is none.
std::string git_commit();

// Files of a run that are worth a hash: the recipe, the model, the newest checkpoint.
std::vector<Artefact> artefacts_of(const RunFolder& folder);

}  // namespace ingot
