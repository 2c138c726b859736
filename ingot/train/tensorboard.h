#pragma once

#include <cstdint>
#include <filesystem>

#include "ingot/io/event_file.h"
#include "ingot/train/evaluate.h"
#include "ingot/train/train.h"

namespace ingot {

// The numbers of each step and evaluation as TensorBoard's scalars: train/loss, validation/loss, ….
class Tensorboard : public Observer {
 public:
  Tensorboard(const std::filesystem::path& folder, int64_t from_step) : file_(folder, from_step) {}

  void after_step(const TrainState& state, const StepReport& report) override;
  void evaluated(int64_t step, const Evaluation& evaluation);

 private:
  EventFile file_;
};

}  // namespace ingot
