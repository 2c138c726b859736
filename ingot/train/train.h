#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ingot/nn/randomness.h"
#include "ingot/optim/optimizer.h"
#include "ingot/optim/sam.h"
#include "ingot/train/numbers.h"
#include "ingot/train/objective.h"
#include "ingot/train/train_state.h"

namespace ingot {

// A micro-batch as a step read it.
struct BatchRecord {
  int64_t sample = 0;  // its first
  int64_t rows = 0;
  std::string hash;  // XXH3-128 of its ids and labels; empty on the meta device

  friend bool operator==(const BatchRecord&, const BatchRecord&) = default;
};

// One optimizer step, as observers see it.
struct StepReport {
  int64_t step = 0;    // 1 for the first
  int64_t tokens = 0;  // of this step
  double loss = 0;     // mean over the step's tokens, nats
  double learning_rate = 0;
  double grad_norm = 0;  // of the mean gradient, before clipping
  double seconds = 0;
  int64_t flops = 0;                      // of matrix products and attention
  std::map<std::string, double> metrics;  // means
  std::vector<BatchRecord> batches;       // that it was computed on
  std::vector<std::string> events;        // what else happened: skipped batches, warnings
};

// Sees every step after it is complete; cannot change what follows.
class Observer {
 public:
  virtual ~Observer() = default;
  virtual void after_step(const TrainState& state, const StepReport& report) = 0;
};

// Going back from a spike of the loss.
struct Rewind {
  // Puts the weights and the optimizer back to the newest saved step before `step`, and returns the
  // state of that time; absent where there is none.
  std::function<std::optional<TrainState>(int64_t step)> restore;
  // Told, after what is to be passed over has been added, where the run goes on: it must be saved.
  std::function<void(const TrainState& state, const std::string& event)> resumed;
};

struct Training {
  int64_t steps = 0;       // of the whole run
  int64_t accumulate = 1;  // micro-batches a step
  double max_norm = 0;     // clip the global gradient norm to this; 0 = never
  double max_value = 0;    // and first each number of it; 0 = never
  SamConfig sam;           // rho 0: the gradient at the weights themselves
  std::function<int64_t(int64_t step)> micro_batches;  // of one step, where it is not accumulate
  std::function<Batch(int64_t position)> batch;        // the micro-batch that starts at a sample
  std::function<double(int64_t step)> learning_rate;   // of step 0, 1, …
  Objective objective;
  // The same batch with labels drawn from the model itself: for rules that want the curvature.
  std::function<Batch(const Batch&)> with_drawn_labels;
  Optimizer* optimizer = nullptr;
  Randomness* randomness = nullptr;     // told the step and micro-batch before each forward
  std::function<void()> before_update;  // before weights or optimizer state are written to
  std::function<void()> begin;          // forgets what the objective gathered in a step given up
  std::function<void(StepReport&)> after_update;  // what else changes in a step; adds metrics
  bool rows_alone = true;  // the objective of a row depends on no other row (not so in pairs)
  bool invariant = false;  // the same bits for any division of a step; takes rows_alone
  NumbersConfig numbers;
  double loss_unit = 0;  // f16: gradients are those of the sum times loss_scale / this; 0: unscaled
  Rewind rewind;         // empty: the run never goes back
  std::vector<Observer*> observers;  // called in this order
  std::function<bool()> stop;        // asked before each step
  // Told of the state before each step; gives the steps of the whole run, which may have changed.
  std::function<int64_t(TrainState&)> last_step;
};

// One optimizer step:  g = Σ_micro ∂loss.sum / Σ_micro loss.count;  g ← g · min(1, max_norm/‖g‖);
// update. With SAM g is taken a second time, where the first one leads; where the rule wants the
// curvature, its estimate from the first micro-batch comes before.
//
// Where the loss or the gradient norm is not finite nothing is updated, and numbers.non_finite says
// what follows: Error(numeric) that names what made the value, or the next batch, or the same one
// with a lower loss scale. Every numbers.recheck steps the gradients are computed twice:
// Error(numeric) where they differ.
StepReport train_step(TrainState& state, Training& training);

// Steps until state.step reaches training.steps or stop() says so. Pretraining, fine-tuning and
// preference training differ only in their objective. Judges each loss (train/spike.h), goes back
// from a spike where numbers.on_spike says so, and checks seals (train/recheck.h).
void train(TrainState& state, Training& training);

// How many micro-batches the next step has, and each of them: tells the randomness, moves
// state.position to its first sample.
int64_t micro_batches_of(const TrainState& state, const Training& training);
Batch next_batch(TrainState& state, int64_t micro, Training& training);
// What gradients are multiplied by on top of the loss: 1, in f16 loss_scale / loss_unit.
double loss_factor(const TrainState& state, const Training& training);

}  // namespace ingot
