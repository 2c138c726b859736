#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "ingot/cli/recipe.h"
#include "ingot/data/batch.h"

namespace ingot {

// What a run reads: training batches by sample position, validation batches by index.
struct RunData {
  std::function<Batch(int64_t position)> batch;  // one micro-batch
  std::function<Batch(int64_t index)> validation;
  int64_t validation_batches = 0;
  int64_t train_bytes = 0;
  int64_t validation_bytes = 0;
  std::string hash;  // of all training and validation bytes
};

// Opens the recipe's text. Throws Error(io) where a file is missing or unreadable, Error(config)
// where none is named or a text is shorter than one sequence.
RunData open_run_data(const Recipe& recipe);

}  // namespace ingot
