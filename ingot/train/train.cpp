#include "ingot/train/train.h"

#include <utility>

#include "ingot/base/log.h"
#include "ingot/train/recheck.h"
#include "ingot/train/spike.h"

namespace ingot {
namespace {

// Goes back from a spike; false where the run cannot or does not want to.
bool rewound(TrainState& state, Training& training, double loss) {
  const NumbersConfig& numbers = training.numbers;
  const LossHistory history = state.history;
  const SampleRange culprits{history.spike_start, state.position};
  const int64_t first = state.step - history.high + 1;
  const std::string what =
      concat("the loss was ", loss, " at step ", state.step, ", high for ", history.high,
             " steps (the median is followed over ", numbers.spike_window, ")");
  if (numbers.on_spike != "rewind" || !training.rewind.restore) {
    log_warn("spike: ", what);
    return false;
  }
  const int64_t rewinds = state.rewinds;
  std::vector<SampleRange> skipped = state.skipped;
  std::optional<TrainState> back;
  if (rewinds < numbers.rewinds) {
    back = training.rewind.restore(first);
  }
  if (!back) {
    log_warn("spike: ", what, "; not gone back: ",
             rewinds < numbers.rewinds ? "no checkpoint before it is left"
                                       : concat("that was done ", rewinds, " times already"));
    return false;
  }
  skipped.push_back(culprits);
  state = *back;
  state.rewinds = rewinds + 1;
  state.skipped = std::move(skipped);
  const std::string event =
      concat("spike: ", what, "; gone back to step ", state.step, ", passing over samples ",
             culprits.begin, " to ", culprits.end - 1);
  log_warn(event);
  training.rewind.resumed(state, event);
  return true;
}

int64_t last_step_of(TrainState& state, const Training& training) {
  return training.last_step ? training.last_step(state) : training.steps;
}

}  // namespace

void train(TrainState& state, Training& training) {
  const NumbersConfig& numbers = training.numbers;
  std::optional<Seal> seal;
  while (state.step < last_step_of(state, training) && !(training.stop && training.stop())) {
    if (seal) {
      seal->check_unbroken(*training.optimizer);
      seal.reset();
    }
    StepReport report = train_step(state, training);
    if (observe_loss(state.history, report.loss, report.batches.front().sample, numbers)) {
      if (rewound(state, training, report.loss)) {
        continue;
      }
      report.events.push_back("spike");
      state.history = {};
    }
    if (numbers.seal > 0 && state.step % numbers.seal == 0) {
      seal.emplace(state.step, *training.optimizer);
    }
    for (Observer* observer : training.observers) {
      observer->after_step(state, report);
    }
  }
}

}  // namespace ingot
