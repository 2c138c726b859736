#include "ingot/train/run_log.h"

#include <algorithm>
#include <cmath>

#include "ingot/base/error.h"
#include "ingot/base/json_library.h"
#include "ingot/device/allocator.h"

namespace ingot {

using Json = nlohmann::ordered_json;

StepFile::Kept RunLog::remembering() {
  return [this](int64_t step, const Json& line) {
    const Json happened = line.value("events", Json::array());
    for (const Json& event : happened) {
      events_.push_back(
          concat("step ", step, ": ", event.is_string() ? event.get<std::string>() : event.dump()));
    }
    if (line.contains("event") && line["event"].is_string()) {
      events_.push_back(line["event"]);
    }
    if (line.contains("validation_loss")) {
      const Json& loss = line["validation_loss"];
      evaluations_.push_back({step, loss.is_number() ? loss.get<double>() : HUGE_VAL});
    } else if (line.contains("loss") && line["loss"].is_number()) {
      steps_.push_back({step, line["loss"]});
    }
  };
}

RunLog::RunLog(std::filesystem::path path, int64_t from_step, double peak_flops)
    : peak_flops_(peak_flops), file_(std::move(path), from_step, remembering()) {}

void RunLog::after_step(const TrainState& state, const StepReport& report) {
  Json entry;
  entry["step"] = report.step;
  entry["tokens"] = state.tokens;
  entry["loss"] = json_number(report.loss);
  entry["lr"] = json_number(report.learning_rate);
  entry["grad_norm"] = json_number(report.grad_norm);
  entry["tokens_per_second"] = json_number(static_cast<double>(report.tokens) / report.seconds);
  const double rate = static_cast<double>(report.flops) / report.seconds;
  entry["mfu"] = peak_flops_ > 0 ? json_number(rate / peak_flops_) : Json(nullptr);
  entry["memory"] = allocator(cpu_device).stats().peak_total;
  for (const auto& [name, value] : report.metrics) {
    entry[name] = json_number(value);
  }
  if (!report.events.empty()) {
    entry["events"] = report.events;
    for (const std::string& event : report.events) {
      events_.push_back(concat("step ", report.step, ": ", event));
    }
  }
  file_.write(entry);
  steps_.push_back({report.step, report.loss});
}

bool RunLog::has_evaluation(int64_t step) const {
  return std::any_of(evaluations_.begin(), evaluations_.end(),
                     [step](const LoggedStep& known) { return known.step == step; });
}

void RunLog::evaluated(int64_t step, const Evaluation& evaluation, const NamedEvaluations& others) {
  if (has_evaluation(step)) {
    return;
  }
  evaluations_.push_back({step, evaluation.loss});
  Json entry;
  entry["step"] = step;
  entry["validation_loss"] = json_number(evaluation.loss);
  entry["validation_bits"] = json_number(evaluation.bits());
  entry["validation_tokens"] = evaluation.tokens;
  entry["validation_seconds"] = json_number(evaluation.seconds);
  for (const auto& [name, value] : evaluation.metrics) {
    entry["validation_" + name] = json_number(value);
  }
  for (const auto& [name, other] : others) {
    entry["validation_loss/" + name] = json_number(other.loss);
    entry["validation_bits/" + name] = json_number(other.bits());
  }
  file_.write(entry);
}

void RunLog::rewind(int64_t step, const std::string& event) {
  steps_.clear();
  evaluations_.clear();
  events_.clear();
  file_.rewind(step, remembering());
  file_.write({{"step", step}, {"event", event}});
  events_.push_back(event);
}

}  // namespace ingot
