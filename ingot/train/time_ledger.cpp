#include "ingot/train/time_ledger.h"

#include <chrono>
#include <sstream>
#include <utility>

#include "ingot/base/error.h"
#include "ingot/base/files.h"
#include "ingot/base/json_library.h"

namespace ingot {
namespace {

using Json = nlohmann::ordered_json;

constexpr double worth_a_line = 1e-3;  // seconds

// One process of a run, as its lines tell.
struct Process {
  double start = 0;
  double first_step = -1;  // when its first step began
  double last = 0;         // its last line
};

double field(const Json& line, const char* key) {
  return line.contains(key) && line[key].is_number() ? line[key].get<double>() : 0;
}

}  // namespace

double now_seconds() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

TimeLedger::TimeLedger(std::filesystem::path path, int64_t from_step, double began)
    : path_(std::move(path)), file_(path_, std::ios::app) {
  check(file_.good(), ErrorKind::io, path_.string(), ": cannot be opened for appending");
  file_ << '\n';  // ends a line that a kill cut short
  write(Json({{"t", began}, {"start", from_step}}).dump());
}

void TimeLedger::after_step(const TrainState&, const StepReport& report) {
  double seconds = report.seconds;
  for (const auto& [kind, part] : within_) {
    seconds -= part;
  }
  Json line;
  line["t"] = now_seconds();
  line["step"] = report.step;
  line["seconds"] = seconds;
  line["tokens"] = report.tokens;
  line["flops"] = report.flops;
  if (!within_.empty()) {
    line["within"] = within_;
  }
  within_.clear();
  write(line.dump());
}

void TimeLedger::spent(const std::string& kind, double seconds) {
  if (seconds >= worth_a_line) {
    write(Json({{"t", now_seconds()}, {"kind", kind}, {"seconds", seconds}}).dump());
  }
}

void TimeLedger::write(const std::string& line) {
  file_ << line << '\n' << std::flush;
  check(file_.good(), ErrorKind::io, path_.string(),
        ": a line could not be written; is the disk full?");
}

Goodput goodput_of(const std::filesystem::path& path) {
  std::istringstream lines(read_file(path));
  std::vector<Process> processes;
  std::map<int64_t, Json> newest;
  Goodput out;
  for (std::string text; std::getline(lines, text);) {
    const Json line = Json::parse(text, nullptr, false);
    if (!line.is_object() || !line.contains("t")) {
      continue;
    }
    const double t = field(line, "t");
    if (line.contains("start")) {
      processes.push_back({t, -1, t});
    }
    if (processes.empty()) {
      continue;
    }
    Process& process = processes.back();
    process.last = t;
    double all = field(line, "seconds");
    if (line.contains("within") && line["within"].is_object()) {
      for (const auto& [kind, seconds] : line["within"].items()) {
        out.kinds[kind] += seconds.get<double>();
        all += seconds.get<double>();
      }
    }
    if (line.contains("kind")) {
      out.kinds[line["kind"].get<std::string>()] += field(line, "seconds");
    }
    if (line.contains("step")) {
      Json& known = newest[line["step"].get<int64_t>()];
      out.repeated += known.is_null() ? 0 : field(known, "seconds");
      known = line;
    }
    if (!line.contains("start") && process.first_step < 0) {
      process.first_step = t - all;
    }
  }
  for (const auto& [step, line] : newest) {
    out.useful += field(line, "seconds");
    out.flops += field(line, "flops");
    out.tokens += static_cast<int64_t>(field(line, "tokens"));
  }
  out.processes = static_cast<int64_t>(processes.size());
  for (size_t i = 0; i < processes.size(); ++i) {
    const Process& process = processes[i];
    out.starting +=
        std::max(0.0, (process.first_step < 0 ? process.last : process.first_step) - process.start);
    out.down += i == 0 ? 0 : std::max(0.0, process.start - processes[i - 1].last);
  }
  if (!processes.empty()) {
    out.wall = processes.back().last - processes.front().start;
  }
  double known = out.useful + out.repeated + out.starting + out.down;
  for (const auto& [kind, seconds] : out.kinds) {
    known += seconds;
  }
  out.other = std::max(0.0, out.wall - known);
  return out;
}

void Timed::after_step(const TrainState& state, const StepReport& report) {
  const double start = now_seconds();
  inner_.after_step(state, report);
  ledger_.spent(kind_, now_seconds() - start);
}

}  // namespace ingot
