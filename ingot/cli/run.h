#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace ingot {

struct RunOptions {
  std::filesystem::path recipe;
  std::vector<std::string> assignments;  // of --set
  std::filesystem::path folder;          // empty: runs/<recipe's name>
  bool resume = false;
  std::filesystem::path branch;  // a checkpoint of another run to start from; empty: none
  int64_t pause_after = 0;       // the step after which to save and stop; 0: the last
  bool json = false;
  bool measure_peak = true;  // of the machine; without, the log has no share of it
};

// Trains as the recipe says, in a run folder. Returns false if a signal asked it to stop before the
// end; then, as after pause_after, everything is saved and --resume continues.
bool run_recipe(const RunOptions& options);

// Where a run is: as asked for, or runs/ and the recipe's name.
std::filesystem::path folder_path(const RunOptions& options);

// Whether somebody wants a checkpoint now: by SIGUSR1, or by a file `save` in the run folder.
bool save_requested(const std::filesystem::path& run);

}  // namespace ingot
