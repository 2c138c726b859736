#include <algorithm>
#include <chrono>
#include <cmath>

#include "ingot/autograd/backward.h"
#include "ingot/autograd/record.h"
#include "ingot/base/exact_sum.h"
#include "ingot/base/log.h"
#include "ingot/device/flops.h"
#include "ingot/kernels/product_check.h"
#include "ingot/optim/clip.h"
#include "ingot/optim/exact_gradients.h"
#include "ingot/tensor/factories.h"
#include "ingot/tensor/layout.h"
#include "ingot/train/curvature.h"
#include "ingot/train/diagnosis.h"
#include "ingot/train/journal.h"
#include "ingot/train/non_finite.h"
#include "ingot/train/recheck.h"
#include "ingot/train/train.h"

namespace ingot {
namespace {

// What the micro-batches of a step add up to.
struct Accumulated {
  double loss = 0;
  double count = 0;
  double factor = 1;     // of the gradients, beside the sum's
  double grad_norm = 0;  // of the mean
  std::map<std::string, double> metrics;
  std::vector<BatchRecord> batches;

  double mean_loss() const { return loss / count; }
  bool finite() const { return std::isfinite(mean_loss()) && std::isfinite(grad_norm); }
};

// Runs the objective forward and back; adds what it sums to `total`, and gives its loss.
double forward_and_back(const Batch& batch, Accumulated& total, Training& training) {
  const Loss loss = training.objective(batch);
  const Device device = loss.sum.device();
  backward(loss.sum, full(loss.sum.shape(), total.factor, loss.sum.dtype(), device));
  total.count += loss.count;
  for (const auto& [name, value] : loss.metrics) {
    total.metrics[name] += value;
  }
  return device.kind == DeviceKind::meta ? 0 : loss.sum.item();
}

// Every row by itself, its randomness told by its place in the step, and order-free sums: nothing
// depends on how the step is divided.
class InvariantSums {
 public:
  explicit InvariantSums(const TensorDict& parameters) : gradients_(parameters) {}

  void add(const Batch& batch, Accumulated& total, Training& training) {
    for (int64_t row = 0; row < batch.ids.size(0); ++row) {
      training.randomness->micro = static_cast<uint64_t>(rows_++);
      add_exactly(loss_, forward_and_back(row_of(batch, row), total, training));
      gradients_.take();
    }
  }
  void finish(Accumulated& total) {
    gradients_.give();
    total.loss = value_of(loss_);
  }

 private:
  ExactGradients gradients_;
  ExactSum loss_;
  int64_t rows_ = 0;
};

Accumulated accumulate_gradients(TrainState& state, Training& training) {
  Accumulated total;
  total.factor = loss_factor(state, training);
  std::optional<InvariantSums> invariant;
  if (training.invariant) {
    check(training.rows_alone, ErrorKind::argument,
          "train: an invariant step takes every row by itself, and this objective compares rows");
    invariant.emplace(training.optimizer->parameters());
  }
  const int64_t count = micro_batches_of(state, training);
  for (int64_t micro = 0; micro < count; ++micro) {
    const Batch batch = next_batch(state, micro, training);
    if (invariant) {
      invariant->add(batch, total, training);
    } else {
      total.loss += forward_and_back(batch, total, training);
    }
    const bool real = batch.ids.device().kind != DeviceKind::meta;
    const int64_t rows = batch.ids.size(0);
    total.batches.push_back({state.position, rows, real ? batch_hash(batch) : ""});
    state.position += rows;
  }
  if (invariant) {
    invariant->finish(total);
  }
  return total;
}

void announce_update(const Training& training) {
  if (training.before_update) {
    training.before_update();
  }
}

// The gradients of a step, at the weights or where SAM leads.
Accumulated gradients_of_step(TrainState& state, Training& training) {
  if (training.begin) {
    training.begin();
  }
  const TrainState before = state;
  const TensorDict& parameters = training.optimizer->parameters();
  Accumulated total = accumulate_gradients(state, training);
  check(total.count > 0, ErrorKind::config, "step ", state.step + 1,
        ": no target counts: every label of its ", state.position - before.position,
        " samples is ignored");
  if (training.sam.rho > 0 && std::isfinite(total.loss)) {
    announce_update(training);
    TrainState again = before;
    const SharpnessAscent up(*training.optimizer, training.sam);
    accumulate_gradients(again, training);
  }
  total.grad_norm = gradient_norm(parameters) / (total.count * total.factor);
  return total;
}

// Computes the gradients once more from where the step began; leaves them.
void recheck(const TrainState& before, const Accumulated& first, Training& training) {
  Optimizer& optimizer = *training.optimizer;
  const NamedHashes hashes = gradient_hashes(optimizer.parameters());
  optimizer.clear();
  TrainState again = before;
  const Accumulated second = gradients_of_step(again, training);
  check_recomputed(before.step + 1, first.loss, second.loss, hashes,
                   gradient_hashes(optimizer.parameters()));
}

[[noreturn]] void halt(const TrainState& before, const Accumulated& total, Training& training,
                       const char* also) {
  const bool of_loss = !std::isfinite(total.mean_loss());
  const std::optional<NonFinite> found = find_non_finite(before, training);
  throw Error(ErrorKind::numeric,
              concat("step ", before.step + 1, ": the ", of_loss ? "loss" : "gradient norm", " is ",
                     of_loss ? total.mean_loss() : total.grad_norm, ", samples from ",
                     before.position, also, ": ",
                     found ? "the first value that is not finite is " + found->text()
                           : std::string("no single operation made it, but a sum over the step"),
                     "; nothing was updated: lower the learning rate, lengthen the warm-up or clip "
                     "gradients"));
}

bool lowers_scale(const Training& training) {
  const std::string& policy = training.numbers.non_finite;
  return training.loss_unit > 0 && (policy == "lower_scale" || policy == "auto");
}

// Gradients that are finite, by the run's policy where the first ones are not.
Accumulated finite_gradients(TrainState& state, Training& training, StepReport& report) {
  for (int64_t skipped = 0;;) {
    const TrainState before = state;
    Accumulated total = gradients_of_step(state, training);
    if (total.finite()) {
      return total;
    }
    training.optimizer->clear();
    if (lowers_scale(training) && std::isfinite(total.mean_loss()) && before.loss_scale.scale > 1) {
      state = before;
      state.loss_scale.after_step(true);
      report.events.push_back(
          concat("gradients overflowed, the loss scale is now ", state.loss_scale.scale));
      continue;
    }
    if (training.numbers.non_finite != "skip") {
      halt(before, total, training, "");
    }
    if (skipped == training.numbers.skips) {
      halt(before, total, training,
           concat(", after ", skipped, " skipped batches in a row").c_str());
    }
    ++skipped;
    report.events.push_back(concat("skipped samples ", before.position, " to ", state.position - 1,
                                   ": the loss is ", total.mean_loss(), ", the gradient norm ",
                                   total.grad_norm));
    log_warn("step ", before.step + 1, ": ", report.events.back());
  }
}

bool is_due(int64_t every, int64_t step) { return every > 0 && step % every == 0; }

void clip_and_update(const Accumulated& total, const StepReport& report, Training& training) {
  const double divisor = total.count * total.factor;
  double norm = report.grad_norm;
  if (training.max_value > 0) {
    clip_by_value(training.optimizer->parameters(), training.max_value * divisor);
    norm = gradient_norm(training.optimizer->parameters()) / divisor;
  }
  announce_update(training);
  training.optimizer->step(report.learning_rate, clip_factor(norm, training.max_norm) / divisor);
}

void give_up(TrainState& state, const TrainState& before, Training& training) {
  state = before;
  training.optimizer->clear();  // half a step's gradients must not reach the next one
}

}  // namespace

int64_t micro_batches_of(const TrainState& state, const Training& training) {
  return training.micro_batches ? training.micro_batches(state.step) : training.accumulate;
}

Batch next_batch(TrainState& state, int64_t micro, Training& training) {
  training.randomness->training = true;
  training.randomness->step = static_cast<uint64_t>(state.step);
  training.randomness->micro = static_cast<uint64_t>(micro);
  state.position = next_sample(state, state.position);
  return training.batch(state.position);
}

double loss_factor(const TrainState& state, const Training& training) {
  return training.loss_unit > 0 ? state.loss_scale.scale / training.loss_unit : 1;
}

StepReport train_step(TrainState& state, Training& training) {
  const auto start = std::chrono::steady_clock::now();
  const int64_t flops = counted_flops();
  const TrainState before = state;
  StepReport report;
  report.step = state.step + 1;
  report.learning_rate = training.learning_rate(state.step);
  std::optional<Diagnosis> diagnosis;
  if (is_due(training.numbers.diagnose, state.step + 1)) {
    diagnosis.emplace(*training.optimizer);
  }
  Accumulated total;
  std::optional<kernels::ProductChecks> checks;
  if (is_due(training.numbers.checksums, state.step + 1)) {
    checks.emplace();
  }
  try {
    if (training.optimizer->curvature_due()) {
      observe_curvature(state, training);
    }
    total = finite_gradients(state, training, report);
    if (is_due(training.numbers.recheck, state.step + 1)) {
      TrainState again = state;
      again.position = total.batches.front().sample;
      recheck(again, total, training);
    }
  } catch (Error& error) {
    give_up(state, before, training);
    if (checks) {
      error.within(concat("step ", before.step + 1));
    }
    throw;
  } catch (...) {
    give_up(state, before, training);
    throw;
  }
  checks.reset();
  report.loss = total.mean_loss();
  report.grad_norm = total.grad_norm;
  if (diagnosis) {
    diagnosis->before_update(total.count * total.factor);
  }
  clip_and_update(total, report, training);
  if (diagnosis) {
    diagnosis->after_update(report);
  }
  if (training.loss_unit > 0) {
    state.loss_scale.after_step(false);
    report.metrics["loss_scale"] = state.loss_scale.scale;
  }

  ++state.step;
  state.tokens += static_cast<int64_t>(total.count);
  report.tokens = static_cast<int64_t>(total.count);
  report.flops = counted_flops() - flops;
  report.batches = std::move(total.batches);
  for (const auto& [name, value] : total.metrics) {
    report.metrics[name] = value / total.count;
  }
  if (training.after_update) {
    training.after_update(report);
  }
  report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return report;
}

}  // namespace ingot
