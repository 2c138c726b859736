#pragma once

#include <cstdint>

#include "ingot/base/progress.h"
#include "ingot/train/train.h"

namespace ingot {

// Shows a run on the terminal: loss, bits per byte (where tokens are bytes), tokens per second,
// share of the machine's measured matrix peak, memory, time left.
class Console : public Observer {
 public:
  Console(int64_t from_step, int64_t steps, double peak_flops, bool byte_tokens,
          ProgressStyle style = standard_error_style());

  void after_step(const TrainState& state, const StepReport& report) override;
  void finish() { progress_.finish(); }

 private:
  Progress progress_;
  double peak_flops_;
  bool byte_tokens_;
  double smooth_loss_ = 0;  // exponential mean over about 20 steps
  double smooth_tokens_ = 0;
  double smooth_seconds_ = 0;
  double smooth_flops_ = 0;
  double weight_ = 0;
};

}  // namespace ingot
