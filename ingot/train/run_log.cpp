#include "ingot/train/run_log.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>

#include "ingot/base/files.h"
#include "ingot/device/allocator.h"

namespace ingot {
namespace {

using Json = nlohmann::ordered_json;

Json number(double value) {
  if (std::isfinite(value)) {
    return value;
  }
  return std::isnan(value) ? "nan" : value > 0 ? "inf" : "-inf";
}

// The step of a line; absent where it is none that this file writes.
std::optional<int64_t> step_of(const Json& entry) {
  const bool usable =
      entry.is_object() && entry.contains("step") && entry["step"].is_number_integer();
  return usable ? std::optional(entry["step"].get<int64_t>()) : std::nullopt;
}

}  // namespace

RunLog::RunLog(std::filesystem::path path, int64_t from_step, double peak_flops)
    : path_(std::move(path)), peak_flops_(peak_flops) {
  std::string kept;
  if (std::filesystem::exists(path_)) {
    std::istringstream lines(read_file(path_));
    for (std::string line; std::getline(lines, line);) {
      const Json entry = Json::parse(line, nullptr, false);
      const std::optional<int64_t> step = step_of(entry);
      if (!step || *step > from_step) {
        continue;
      }
      kept += line + "\n";
      if (entry.contains("validation_loss")) {
        evaluations_.insert(*step);
      } else if (entry.contains("loss") && entry["loss"].is_number()) {
        steps_.push_back({*step, entry["loss"]});
      }
    }
  }
  write_file(path_, kept);
  file_.open(path_, std::ios::app);
  check(file_.good(), ErrorKind::io, path_.string(), ": cannot be opened for appending");
}

void RunLog::after_step(const TrainState& state, const StepReport& report) {
  Json entry;
  entry["step"] = report.step;
  entry["tokens"] = state.tokens;
  entry["loss"] = number(report.loss);
  entry["lr"] = number(report.learning_rate);
  entry["grad_norm"] = number(report.grad_norm);
  entry["tokens_per_second"] = number(static_cast<double>(report.tokens) / report.seconds);
  const double rate = static_cast<double>(report.flops) / report.seconds;
  entry["mfu"] = peak_flops_ > 0 ? number(rate / peak_flops_) : Json(nullptr);
  entry["memory"] = allocator(cpu_device).stats().peak_total;
  for (const auto& [name, value] : report.metrics) {
    entry[name] = number(value);
  }
  write(entry.dump());
  steps_.push_back({report.step, report.loss});
}

void RunLog::evaluated(int64_t step, const Evaluation& evaluation) {
  if (!evaluations_.insert(step).second) {
    return;
  }
  Json entry;
  entry["step"] = step;
  entry["validation_loss"] = number(evaluation.loss);
  entry["validation_bits"] = number(evaluation.bits());
  entry["validation_tokens"] = evaluation.tokens;
  entry["validation_seconds"] = number(evaluation.seconds);
  for (const auto& [name, value] : evaluation.metrics) {
    entry["validation_" + name] = number(value);
  }
  write(entry.dump());
}

void RunLog::write(const std::string& line) {
  file_ << line << '\n' << std::flush;
  check(file_.good(), ErrorKind::io, path_.string(),
        ": a line could not be written; is the disk full?");
}

}  // namespace ingot
