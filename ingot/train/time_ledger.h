#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>

#include "ingot/train/train.h"

namespace ingot {

// times.jsonl in the run folder: what a run spent its time on, over all processes that it took.
// Lines are only ever appended, so that steps that were lost to a kill and done again are there
// twice. Kinds of time: "saving", "evaluating", "data", "sampling".
class TimeLedger : public Observer {
 public:
  // Notes that a process starts, to go on from a step. `began`: when it did, in seconds of the
  // system's clock.
  TimeLedger(std::filesystem::path path, int64_t from_step, double began);

  void after_step(const TrainState& state, const StepReport& report) override;
  // Time between two steps, when it is over.
  void spent(const std::string& kind, double seconds);
  // Time of the step that is being computed: counted as this kind and not as the step's.
  void within_step(const std::string& kind, double seconds) { within_[kind] += seconds; }

 private:
  void write(const std::string& line);

  std::filesystem::path path_;
  std::ofstream file_;
  std::map<std::string, double> within_;
};

double now_seconds();  // of the system's clock, since 1970

// Where the time of a run went. All parts together are `wall`.
struct Goodput {
  double wall = 0;      // from the first process' start to the last line
  double useful = 0;    // in steps that led to the weights
  double repeated = 0;  // in steps that were done again
  double starting = 0;  // from the start of a process to its first step
  double down = 0;      // between the last sign of one process and the start of the next
  std::map<std::string, double> kinds;
  double other = 0;
  double flops = 0;  // of the useful steps
  int64_t tokens = 0;
  int64_t processes = 0;

  double share() const { return wall > 0 ? useful / wall : 0; }
};

// Lines that are damaged (the last one of a killed process) are passed over. Throws Error(io) where
// the file cannot be read.
Goodput goodput_of(const std::filesystem::path& path);

// An observer whose time is noted.
class Timed : public Observer {
 public:
  Timed(Observer& inner, std::string kind, TimeLedger& ledger)
      : inner_(inner), kind_(std::move(kind)), ledger_(ledger) {}
  void after_step(const TrainState& state, const StepReport& report) override;

 private:
  Observer& inner_;
  std::string kind_;
  TimeLedger& ledger_;
};

}  // namespace ingot
