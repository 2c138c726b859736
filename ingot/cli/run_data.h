#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "ingot/cli/recipe.h"
#include "ingot/cli/text_codec.h"
#include "ingot/data/batch.h"

namespace ingot {

// What a sample was made from.
struct Source {
  std::string file;
  int64_t begin = 0;  // bytes of the file, or tokens of it where there is a tokenizer
  int64_t end = 0;
};

// A further text to measure on.
struct ValidationSet {
  std::string name;
  std::string hash;  // of its bytes
  std::function<Batch(int64_t index)> batch;
  int64_t batches = 0;
  double bytes_per_target = 1;
};

// What a run reads: training batches by sample position, validation batches by index.
struct RunData {
  std::function<Batch(int64_t position)> batch;  // one micro-batch
  std::function<std::vector<Source>(int64_t sample)> sources;
  std::function<Batch(int64_t index)> validation;
  int64_t validation_batches = 0;
  std::vector<ValidationSet> sets;
  int64_t train_bytes = 0;
  int64_t validation_bytes = 0;
  // Of held-out text, on average: what turns nats a token into bits a byte. 1 for byte tokens.
  double bytes_per_target = 1;
  TextCodec codec;   // how the tokens are text
  std::string hash;  // of all training and validation bytes, and of the tokenizer
};

// Opens the recipe's text. Throws Error(config) where the model's vocabulary is smaller than the
// tokenizer's. Throws Error(io) where a file is missing or unreadable, Error(config)
// where none is named, a text is shorter than one sequence, or evaluate.sets is not understood.
RunData open_run_data(const Recipe& recipe);

}  // namespace ingot
