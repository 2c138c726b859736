#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "ingot/train/train.h"

namespace ingot {

// Writes checkpoints of a run every so many steps and keeps the newest ones. A checkpoint holds the
// train state, the parameters, the optimizer's state and the recipe; see io/checkpoint.h for what
// survives a kill at any moment.
class Saver : public Observer {
 public:
  struct Options {
    std::filesystem::path folder;
    std::string recipe;     // TOML
    std::string data_hash;  // of the training bytes, compared on resume
    int64_t every = 0;      // steps; 0: only when save() is called
    int64_t keep = 2;
  };
  Saver(Options options, const Optimizer& optimizer);

  void after_step(const TrainState& state, const StepReport& report) override;
  // Does nothing where this step is saved already.
  void save(const TrainState& state);

 private:
  Options options_;
  const Optimizer& optimizer_;
  int64_t saved_step_ = -1;
};

// What a run continues from.
struct SavedRun {
  std::filesystem::path path;  // of the checkpoint
  TrainState state;
  std::string recipe;
  std::string data_hash;
};

// The newest checkpoint below `folder` that verifies, its values copied into the optimizer and its
// parameters. Newer ones that are damaged are reported as warnings and passed over. Throws
// Error(io) where there is none, Error(format) where its tensors are not those of this model.
SavedRun restore_run(const std::filesystem::path& folder, Optimizer& optimizer);
// The recipe of that checkpoint, before a model is built. Throws Error(io) where there is none.
SavedRun peek_run(const std::filesystem::path& folder);

}  // namespace ingot
