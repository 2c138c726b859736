#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <set>
#include <vector>

#include "ingot/train/evaluate.h"
#include "ingot/train/train.h"

namespace ingot {

// One line of a log, as much of it as plots need.
struct LoggedStep {
  int64_t step = 0;
  double loss = 0;
};

// log.jsonl in the run folder: a JSON object a line. A training step's has step, tokens (so far),
// loss, lr, grad_norm, tokens_per_second, mfu (0 … 1 of the measured matrix peak; null if that is
// unknown), memory (peak bytes allocated) and the report's metrics (of experts: balance_loss,
// router_z_loss, expert_load_max_over_mean, idle_experts); an evaluation's has step,
// validation_loss, validation_bits, validation_tokens and the objective's metrics as
// validation_NAME. A value that is not finite is written as
// a string, never as a number.
class RunLog : public Observer {
 public:
  // Opens for appending. Lines of steps after `from_step` (written after the checkpoint that a
  // resumed run continues from), a last line cut short by a kill, and whatever else is no line of a
  // log are removed first.
  RunLog(std::filesystem::path path, int64_t from_step, double peak_flops);

  void after_step(const TrainState& state, const StepReport& report) override;
  // Writes nothing where this step has an evaluation already.
  void evaluated(int64_t step, const Evaluation& evaluation);
  bool has_evaluation(int64_t step) const { return evaluations_.contains(step); }

  const std::vector<LoggedStep>& steps() const { return steps_; }  // of the whole file

 private:
  void write(const std::string& line);

  std::filesystem::path path_;
  std::ofstream file_;
  double peak_flops_;
  std::vector<LoggedStep> steps_;
  std::set<int64_t> evaluations_;
};

}  // namespace ingot
