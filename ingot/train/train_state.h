#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ingot/optim/loss_scale.h"

namespace ingot {

// Samples begin … end − 1 in the order of the run.
struct SampleRange {
  int64_t begin = 0;
  int64_t end = 0;

  friend bool operator==(const SampleRange&, const SampleRange&) = default;
};

// What tells a spike of the loss from its noise: see train/spike.h.
struct LossHistory {
  std::vector<double> losses;  // of the newest steps that were no part of a spike
  int64_t high = 0;            // steps in a row, up to now, that were
  int64_t step_start = 0;      // the first sample of the newest step
  int64_t spike_start = 0;     // and of the step before those `high` ones
};

// Where a run stands. With the parameters, the optimizer's state and the recipe this is all that a
// checkpoint holds: data order and randomness are functions of (seed, step, position).
struct TrainState {
  int64_t step = 0;      // optimizer steps taken
  int64_t position = 0;  // samples consumed
  int64_t tokens = 0;    // targets trained on
  LossScale loss_scale;  // in f16
  LossHistory history;
  int64_t rewinds = 0;               // how often the run went back from a spike
  std::vector<SampleRange> skipped;  // what it passes over since; ascending
  int64_t last_step = 0;             // where a deadline made the run end; 0: nowhere (deadline.h)
};

// The first sample from `position` on that is not passed over.
int64_t next_sample(const TrainState& state, int64_t position);

// The state as a JSON object, and back; doubles to the last bit. `name` stands for the text in
// errors: Error(format).
std::string state_text(const TrainState& state, const std::string& data_hash);
struct ParsedState {
  TrainState state;
  std::string data_hash;
};
ParsedState parse_state(const std::string& text, const std::string& name);

}  // namespace ingot
