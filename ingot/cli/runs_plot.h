#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "ingot/cli/run_store.h"

namespace ingot {

// ingot runs plot: the loss curves of runs, in the terminal, as a picture and as a table.
struct PlotOptions {
  std::string by = "step";         // the x axis: step, tokens or flops
  double smooth = 0.9;             // weight of the running mean (train/curve_marks.h)
  std::filesystem::path svg, csv;  // empty: not written
};

// Throws Error(io) where a run has no log.
void plot_runs(const std::vector<RunRecord>& runs, const PlotOptions& options);

}  // namespace ingot
