#include "ingot/cli/validator.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>

#include "ingot/base/json_library.h"
#include "ingot/base/log.h"
#include "ingot/base/text_size.h"
#include "ingot/cli/kinds.h"
#include "ingot/cli/sample.h"

namespace ingot {
namespace {

constexpr int64_t rising = 3;  // evaluations without gain that count as a rise

// Evaluations since the last one that was lower than all before it by more than min_gain.
int64_t without_gain(const std::vector<LoggedStep>& evaluations, double min_gain) {
  double best = HUGE_VAL;
  int64_t since = 0;
  for (const LoggedStep& evaluation : evaluations) {
    ++since;
    if (evaluation.loss < best - min_gain) {
      best = evaluation.loss;
      since = 0;
    }
  }
  return since;
}

// The mean training loss of the last tenth of the steps up to `step`, or of the last ten.
double training_loss(const std::vector<LoggedStep>& steps, int64_t step) {
  size_t end = steps.size();
  while (end > 0 && steps[end - 1].step > step) {
    --end;
  }
  const size_t count = std::min(end, std::max<size_t>(10, end / 10));
  double sum = 0;
  for (size_t i = end - count; i < end; ++i) {
    sum += steps[i].loss;
  }
  return count == 0 ? HUGE_VAL : sum / static_cast<double>(count);
}

bool is_due(int64_t every, int64_t step) { return every > 0 && step > 0 && step % every == 0; }

}  // namespace

bool keeps_best(const Recipe& recipe) {
  return recipe.checkpoint.best || recipe.evaluate.patience > 0;
}

Validator::Validator(Session& session, const RunData& data, RunLog& log, Saver& saver,
                     std::filesystem::path samples, Told told)
    : session_(session),
      data_(data),
      log_(log),
      saver_(saver),
      samples_(std::move(samples)),
      told_(std::move(told)) {}

void Validator::after_step(const TrainState& state, const StepReport&) {
  measure_if_due(state);
  if (is_due(session_.recipe().sample.every, state.step)) {
    write_sample(state.step);
  }
}

void Validator::measure_if_due(const TrainState& state) {
  const EvaluateConfig& config = session_.recipe().evaluate;
  if (is_due(config.every, state.step) && state.step < session_.recipe().train.steps &&
      !log_.has_evaluation(state.step)) {
    measure(state, config.batches > 0 ? std::min(config.batches, data_.validation_batches)
                                      : data_.validation_batches);
  }
}

Evaluation Validator::measure_all(const TrainState& state) {
  return measure(state, data_.validation_batches);
}

bool Validator::wants_to_stop() const {
  const EvaluateConfig& config = session_.recipe().evaluate;
  return config.patience > 0 &&
         without_gain(log_.evaluations(), config.min_gain) >= config.patience;
}

Evaluation Validator::evaluated(int64_t batches, const std::function<Batch(int64_t)>& batch,
                                double bytes_per_target) {
  Evaluation found = evaluate(session_.objective(), batches, batch, *session_.model().randomness());
  found.bytes_per_target = bytes_per_target;
  return found;
}

Evaluation Validator::measure(const TrainState& state, int64_t batches) {
  saver_.flush();  // other weights may be shown
  Evaluation found;
  NamedEvaluations others;
  {
    const EvaluatedWeights shown(session_.optimizer());
    found = evaluated(batches, data_.validation, data_.bytes_per_target);
    for (const ValidationSet& set : data_.sets) {
      const int64_t limit = session_.recipe().evaluate.batches;
      others.emplace_back(
          set.name, evaluated(limit > 0 ? std::min(limit, set.batches) : set.batches, set.batch,
                              set.bytes_per_target));
    }
  }
  log_.evaluated(state.step, found, others);
  if (run_kind(session_.recipe().kind).rows > 1) {
    std::string metrics;
    for (const auto& [name, value] : found.metrics) {
      metrics += fmt::format(", {} {:.4f}", name, value);
    }
    log_info(fmt::format("step {}: held-out loss {:.4f}{} ({} in {})", state.step, found.loss,
                         metrics, found.tokens, text_duration(found.seconds)));
  } else {
    log_info(fmt::format("step {}: held-out loss {:.4f}, {:.4f} bits per byte ({} bytes in {})",
                         state.step, found.loss, found.bits(),
                         text_count(static_cast<double>(found.tokens) * found.bytes_per_target),
                         text_duration(found.seconds)));
  }
  for (const auto& [name, one] : others) {
    log_info(fmt::format("  {}: loss {:.4f}, {:.4f} bits per byte, perplexity {:.4g}", name,
                         one.loss, one.bits(), one.perplexity()));
  }
  warn_of_overfitting(state.step, found.loss);
  if (told_) {
    told_(state.step, found);
  }
  if (keeps_best(session_.recipe()) && found.loss < saver_.best_loss()) {
    saver_.keep_best(state, found.loss);
  }
  return found;
}

void Validator::warn_of_overfitting(int64_t step, double loss) const {
  const double limit = session_.recipe().evaluate.gap;
  const double training = training_loss(log_.steps(), step);
  constexpr const char* advice = "; stop earlier, or use more text or dropout";
  if (limit > 0 && loss - training > limit) {
    log_warn(
        fmt::format("step {}: overfitting: the held-out loss is {:.4f}, that of training "
                    "{:.4f}: a gap above {}{}",
                    step, loss, training, limit, advice));
    return;
  }
  const std::vector<LoggedStep>& evaluations = log_.evaluations();
  if (without_gain(evaluations, 0) == rising) {
    const LoggedStep& best = evaluations[evaluations.size() - 1 - rising];
    const double then = training_loss(log_.steps(), best.step);
    if (training < then) {
      log_warn(
          fmt::format("step {}: overfitting: since step {} the held-out loss rose from {:.4f} "
                      "to {:.4f} while that of training fell from {:.4f} to {:.4f}{}",
                      step, best.step, best.loss, loss, then, training, advice));
    }
  }
}

void Validator::write_sample(int64_t step) {
  saver_.flush();
  const EvaluatedWeights shown(session_.optimizer());
  const std::string text =
      sample_text(session_.model(), data_.codec, session_.recipe().sample,
                  static_cast<uint64_t>(session_.recipe().seed), data_.chat.get());
  log_info("step ", step, " writes: ", text);
  std::ofstream file(samples_, std::ios::app);
  file << nlohmann::ordered_json({{"step", step}, {"text", text}})
              .dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace)
       << '\n'
       << std::flush;
  check(file.good(), ErrorKind::io, samples_.string(),
        ": a sample could not be written; is the disk full?");
}

}  // namespace ingot
