#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "ingot/cli/run_data.h"
#include "ingot/cli/session.h"
#include "ingot/train/run_log.h"
#include "ingot/train/saver.h"

namespace ingot {

// Measures every so many steps, after the saver has saved: a failing evaluation loses nothing. The
// held-out text first, then the recipe's further sets, each by its name. Keeps the best checkpoint,
// warns where the held-out loss leaves the training loss behind, says when to stop, and writes
// samples. What it decides is a function of the log: a resumed run decides the same.
class Validator : public Observer {
 public:
  using Told = std::function<void(int64_t step, const Evaluation&)>;

  // `told` hears of every evaluation of the held-out text.
  Validator(Session& session, const RunData& data, RunLog& log, Saver& saver,
            std::filesystem::path samples, Told told);

  void after_step(const TrainState& state, const StepReport&) override;
  // Also where a run continues: it may have been killed after saving and before measuring.
  void measure_if_due(const TrainState& state);
  // On the whole held-out text, as the figure that a run is known by.
  Evaluation measure_all(const TrainState& state);
  // Whether evaluate.patience evaluations in a row brought no gain over the best before them.
  bool wants_to_stop() const;

 private:
  Evaluation measure(const TrainState& state, int64_t batches);
  Evaluation evaluated(int64_t batches, const std::function<Batch(int64_t)>& batch,
                       double bytes_per_target);
  void warn_of_overfitting(int64_t step, double loss) const;
  void write_sample(int64_t step);

  Session& session_;
  const RunData& data_;
  RunLog& log_;
  Saver& saver_;
  std::filesystem::path samples_;
  Told told_;
};

// Whether the checkpoint of the least held-out loss stays: when asked for, and where the run may
// end early, for it is what that run gives.
bool keeps_best(const Recipe& recipe);

}  // namespace ingot
