#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "ingot/nn/randomness.h"
#include "ingot/optim/optimizer.h"
#include "ingot/optim/sam.h"
#include "ingot/train/objective.h"

namespace ingot {

// Where a run stands. With the parameters, the optimizer's state and the recipe this is all that a
// checkpoint holds: data order and randomness are functions of (seed, step, position).
struct TrainState {
  int64_t step = 0;      // optimizer steps taken
  int64_t position = 0;  // samples consumed
  int64_t tokens = 0;    // targets trained on
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
};

// Sees every step after it is complete; cannot change what follows.
class Observer {
 public:
  virtual ~Observer() = default;
  virtual void after_step(const TrainState& state, const StepReport& report) = 0;
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
  Randomness* randomness = nullptr;  // told the step and micro-batch before each forward
  std::function<void(StepReport&)> after_update;  // what else changes in a step; adds metrics
  std::vector<Observer*> observers;               // called in this order
  std::function<bool()> stop;                     // asked before each step
};

// One optimizer step:  g = Σ_micro ∂loss.sum / Σ_micro loss.count;  g ← g · min(1, max_norm/‖g‖);
// update. With SAM g is taken a second time, where the first one leads; where the rule wants the
// curvature, its estimate from the first micro-batch comes before. Throws Error(numeric), before
// the update, when the loss or the gradient norm is not finite.
StepReport train_step(TrainState& state, Training& training);

// Steps until state.step reaches training.steps or stop() says so. Pretraining, fine-tuning and
// preference training differ only in their objective.
void train(TrainState& state, Training& training);

}  // namespace ingot
