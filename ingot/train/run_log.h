#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "ingot/train/evaluate.h"
#include "ingot/train/step_file.h"
#include "ingot/train/train.h"

namespace ingot {

// One line of a log, as much of it as plots need.
struct LoggedStep {
  int64_t step = 0;
  double loss = 0;
};

using NamedEvaluations = std::vector<std::pair<std::string, Evaluation>>;

// log.jsonl in the run folder: a JSON object a line. A training step's has step, tokens (so far),
// loss, lr, grad_norm, tokens_per_second, mfu (0 … 1 of the measured matrix peak; null if that is
// unknown), memory (peak bytes allocated) and the report's metrics (of experts: balance_loss,
// router_z_loss, expert_load_max_over_mean, idle_experts), and `events` where something happened in
// it; an evaluation's has step, validation_loss, validation_bits, validation_tokens, and the first
// two followed by "/name" for further sets, and the objective's metrics as validation_NAME; a
// rewind's the step that was gone back to and `event`. A value that is not finite is written as a
// string, never as a number. See StepFile for what is removed when a run is resumed.
class RunLog : public Observer {
 public:
  RunLog(std::filesystem::path path, int64_t from_step, double peak_flops);

  void after_step(const TrainState& state, const StepReport& report) override;
  // Writes nothing where this step has an evaluation already.
  void evaluated(int64_t step, const Evaluation& evaluation, const NamedEvaluations& others = {});
  bool has_evaluation(int64_t step) const;
  // The run goes on from `step`: what was written of later ones is removed.
  void rewind(int64_t step, const std::string& event);

  const std::vector<LoggedStep>& steps() const { return steps_; }  // of the whole file
  const std::vector<LoggedStep>& evaluations() const { return evaluations_; }
  const std::vector<std::string>& events() const { return events_; }  // "step 7: …"

 private:
  StepFile::Kept remembering();

  double peak_flops_;
  std::vector<LoggedStep> steps_;
  std::vector<LoggedStep> evaluations_;
  std::vector<std::string> events_;
  StepFile file_;
};

}  // namespace ingot
