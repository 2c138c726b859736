#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "ingot/train/step_file.h"
#include "ingot/train/train.h"

namespace ingot {

// journal.jsonl in the run folder: what is needed to run any step again and to tell whether it is
// the same. A line a step: step, seed and rng_step (with the micro-batch's number they are the key
// of every random draw), lr, loss and grad_norm to the last bit, and for every micro-batch its
// first sample, its rows and the XXH3-128 of its ids and labels.
struct JournalEntry {
  int64_t step = 0;
  double loss = 0;
  double grad_norm = 0;
  std::vector<BatchRecord> batches;
};

class Journal : public Observer {
 public:
  Journal(std::filesystem::path path, int64_t from_step, int64_t seed);

  void after_step(const TrainState& state, const StepReport& report) override;
  void rewind(int64_t step);  // what was written of later steps is removed

 private:
  StepFile file_;
  int64_t seed_;
};

// The lines of steps `first` … `last`, those of them that there are. Throws Error(io) where the
// file cannot be read, Error(format) naming a line that is damaged.
std::vector<JournalEntry> read_journal(const std::filesystem::path& path, int64_t first,
                                       int64_t last);

// XXH3-128 of ids and labels.
std::string batch_hash(const Batch& batch);

}  // namespace ingot
