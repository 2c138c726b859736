#include "ingot/train/train.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "ingot/autograd/backward.h"
#include "ingot/autograd/record.h"
#include "ingot/device/flops.h"
#include "ingot/ops/elementwise.h"
#include "ingot/optim/clip.h"
#include "ingot/tensor/factories.h"

namespace ingot {
namespace {

void check_finite(const char* what, double value, int64_t step, int64_t position) {
  check(std::isfinite(value), ErrorKind::numeric, "step ", step + 1, ": the ", what, " is ", value,
        ", samples from ", position,
        "; nothing was updated: lower the learning rate, lengthen the warm-up or clip gradients");
}

// What the micro-batches of a step add up to.
struct Accumulated {
  double loss = 0;
  double count = 0;
  std::map<std::string, double> metrics;
};

Accumulated accumulate_gradients(TrainState& state, Training& training) {
  Accumulated total;
  const int64_t count =
      training.micro_batches ? training.micro_batches(state.step) : training.accumulate;
  for (int64_t micro = 0; micro < count; ++micro) {
    training.randomness->step = static_cast<uint64_t>(state.step);
    training.randomness->micro = static_cast<uint64_t>(micro);
    const Batch batch = training.batch(state.position);
    const Loss loss = training.objective(batch);
    backward(loss.sum);
    const bool real = loss.sum.device().kind != DeviceKind::meta;
    total.loss += real ? loss.sum.item() : 0;
    total.count += loss.count;
    for (const auto& [name, value] : loss.metrics) {
      total.metrics[name] += value;
    }
    state.position += batch.ids.size(0);
  }
  return total;
}

// The diagonal of the Hessian from one micro-batch whose labels the model draws itself: count·ĝ², ĝ
// the gradient of the mean loss (Gauss-Newton-Bartlett; optim/sophia.h).
void observe_curvature(const TrainState& state, Training& training) {
  check(training.with_drawn_labels != nullptr, ErrorKind::config,
        "optim: ", training.optimizer->rule(),
        " draws labels from the model, which this objective has not; "
        "choose another rule");
  training.randomness->step = static_cast<uint64_t>(state.step);
  training.randomness->micro = 0;
  const Loss loss = training.objective(training.with_drawn_labels(training.batch(state.position)));
  backward(loss.sum);
  const NoGrad quiet;
  Optimizer& optimizer = *training.optimizer;
  optimizer.observe_curvature(
      optimizer.parameters().mapped([&](const std::string&, const Tensor& p) {
        const Tensor& g = grad(p);
        return g.defined() ? square(g) * (1 / std::max(1.0, loss.count))
                           : zeros(p.shape(), accumulator(p.dtype()), p.device());
      }));
  optimizer.clear();
}

// The gradients where those at the weights lead, for the same samples.
void climb(TrainState state, int64_t position, Training& training) {
  state.position = position;
  const SharpnessAscent up(*training.optimizer, training.sam);
  accumulate_gradients(state, training);
}

}  // namespace

StepReport train_step(TrainState& state, Training& training) {
  const auto start = std::chrono::steady_clock::now();
  const int64_t flops = counted_flops();
  const int64_t position = state.position;
  training.randomness->training = true;
  StepReport report;
  report.learning_rate = training.learning_rate(state.step);
  Accumulated total;
  try {
    if (training.optimizer->curvature_due()) {
      observe_curvature(state, training);
    }
    total = accumulate_gradients(state, training);
    check(total.count > 0, ErrorKind::config, "step ", state.step + 1,
          ": no target counts: every label of its ", state.position - position,
          " samples is ignored");
    report.loss = total.loss / total.count;
    if (training.sam.rho > 0) {
      climb(state, position, training);
    }
    report.grad_norm = gradient_norm(training.optimizer->parameters()) / total.count;
    check_finite("loss", report.loss, state.step, position);
    check_finite("gradient norm", report.grad_norm, state.step, position);
  } catch (...) {
    state.position = position;
    training.optimizer->clear();  // half a step's gradients must not reach the next one
    throw;
  }
  double norm = report.grad_norm;
  if (training.max_value > 0) {
    clip_by_value(training.optimizer->parameters(), training.max_value * total.count);
    norm = gradient_norm(training.optimizer->parameters()) / total.count;
  }
  const double clip = clip_factor(norm, training.max_norm);
  training.optimizer->step(report.learning_rate, clip / total.count);

  ++state.step;
  state.tokens += static_cast<int64_t>(total.count);
  report.step = state.step;
  report.tokens = static_cast<int64_t>(total.count);
  report.flops = counted_flops() - flops;
  for (const auto& [name, value] : total.metrics) {
    report.metrics[name] = value / total.count;
  }
  if (training.after_update) {
    training.after_update(report);
  }
  report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return report;
}

void train(TrainState& state, Training& training) {
  while (state.step < training.steps && !(training.stop && training.stop())) {
    const StepReport report = train_step(state, training);
    for (Observer* observer : training.observers) {
      observer->after_step(state, report);
    }
  }
}

}  // namespace ingot
