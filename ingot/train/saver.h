#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "ingot/io/checkpoint.h"
#include "ingot/train/train.h"

namespace ingot {

// Writes checkpoints of a run every so many steps and keeps the newest ones. A checkpoint holds the
// train state, the parameters, the optimizer's state and the recipe; see io/checkpoint.h for what
// survives a kill at any moment. Checkpoints of later steps than the one saved (damaged ones that a
// resumed run passed over) are removed once it is safe, lest they count among the newest.
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
  // What all checkpoints that are kept, and the one being written, take on disk.
  int64_t bytes_of_all() const;
  // Does nothing where this step is saved already.
  void save(const TrainState& state);

 private:
  Checkpoint checkpoint_of(const TrainState& state) const;

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
  Checkpoint checkpoint;  // verified, its tensors mapped
};

// The newest checkpoint below `folder` that verifies. Newer ones that are damaged are reported as
// warnings and passed over. Throws Error(io) where there is none.
SavedRun find_run(const std::filesystem::path& folder);
// One checkpoint. Throws Error(io) or Error(format) where it is none, or is damaged.
SavedRun read_run(const std::filesystem::path& checkpoint);

// Copies its values into the optimizer and its parameters. Throws Error(format), before anything is
// written to a parameter, where its tensors are not those of this model and optimizer.
void restore_run(const SavedRun& saved, Optimizer& optimizer);

}  // namespace ingot
