#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "ingot/cli/run_plan.h"
#include "ingot/cli/run_store.h"
#include "ingot/train/run_log.h"
#include "ingot/train/time_ledger.h"

namespace ingot {

// Everything that the report of a run is made from.
struct ReportFigures {
  RunRecord record;
  RunPlan plan;
  Goodput time;
  int64_t peak_memory = 0;  // bytes, of training
  double peak_flops = 0;    // of the machine, measured; 0: unknown
  int64_t threads = 0;      // that computed
  std::vector<LoggedStep> losses;
  std::vector<LoggedStep> held_out;
  std::vector<Artefact> artefacts;
  std::vector<std::string> events;

  double mfu() const;  // of the useful steps; 0 where the peak is unknown
  double petaflop_days() const;
};

// report.md and loss.svg in the folder of the run: what was trained on what, what it came to, plan
// against actual, where the time went, on which machine, and the hashes of all that.
void write_report(const std::filesystem::path& folder, const ReportFigures& figures);

// "memory: planned 1.20 GiB, took 1.18 GiB (−1.7 %)", and the same of the time where it was
// planned.
std::string plan_against_actual(const ReportFigures& figures);

}  // namespace ingot
