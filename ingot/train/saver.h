#pragma once

#include <cstdint>
#include <exception>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <thread>

#include "ingot/io/checkpoint.h"
#include "ingot/train/train.h"

namespace ingot {

// Writes checkpoints of a run every so many steps, and when asked. A checkpoint holds the train
// state, the parameters, the optimizer's state and the recipe; see io/checkpoint.h for what
// survives a kill at any moment. Checkpoints of later steps than the one saved (damaged ones that a
// resumed run passed over, or those that a spike undid) are removed once it is safe, lest they
// count among the newest.
//
// In the background: between two updates nobody writes to weights or optimizer state, so a thread
// reads them from where they are, without a copy, while the next gradients are computed. flush()
// must come before anything changes them; Training::before_update is for that. What the thread
// meets is thrown there.
class Saver : public Observer {
 public:
  struct Options {
    std::filesystem::path folder;
    std::string recipe;      // TOML
    std::string data_hash;   // of the training bytes, compared on resume
    int64_t every = 0;       // steps; 0: only when save() is called
    int64_t keep = 2;        // the newest that stay
    int64_t keep_every = 0;  // those of such steps stay too; 0: none
    bool best = false;       // keep_best() will be called
    bool background = false;
    std::function<bool()> requested{};  // asked after each step: whether to save now
  };
  Saver(Options options, const Optimizer& optimizer);
  ~Saver() override;  // waits

  void after_step(const TrainState& state, const StepReport& report) override;

  // Throws Error(io) unless all checkpoints that a run of `steps` steps keeps, and the one being
  // written, fit on the disk beside what is there already.
  void check_space(int64_t steps) const;
  int64_t bytes_of_all(int64_t steps) const;

  // Does nothing where this step is saved already.
  void save(const TrainState& state);
  // Also then: for a run that went back to a step and goes on otherwise.
  void save_anew(const TrainState& state);
  // Keeps the checkpoint of this step, saving it if need be, as the one of the least held-out loss;
  // best.json beside it says so. The one before is no longer kept for that.
  void keep_best(const TrainState& state, double loss);
  // The least held-out loss so far; +∞ where none was told.
  double best_loss() const;
  std::optional<int64_t> best_step() const;
  // Waits for what is being written. Throws what saving threw.
  void flush();

 private:
  struct Best {
    int64_t step = 0;
    double loss = 0;
  };
  Checkpoint checkpoint_of(const TrainState& state) const;
  void write(const Checkpoint& checkpoint);  // and prunes
  void prune() const;
  std::filesystem::path best_path() const { return options_.folder / "best.json"; }

  Options options_;
  const Optimizer& optimizer_;
  int64_t saved_step_ = -1;
  std::optional<Best> best_;
  std::thread writer_;
  std::exception_ptr failure_;  // of the writer; read after joining it
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

// Puts the optimizer back to the newest checkpoint below `folder` of a step before `step` that
// verifies; absent where there is none.
std::optional<TrainState> restore_before(const std::filesystem::path& folder, int64_t step,
                                         Optimizer& optimizer);

// Copies its values into the optimizer and its parameters. Throws Error(format), before anything is
// written to a parameter, where its tensors are not those of this model and optimizer.
void restore_run(const SavedRun& saved, Optimizer& optimizer);

}  // namespace ingot
