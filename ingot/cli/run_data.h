#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "ingot/cli/recipe.h"
#include "ingot/cli/text_codec.h"
#include "ingot/data/batch.h"
#include "ingot/posttrain/added_tokens.h"
#include "ingot/text/chat_template.h"

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
  // The first sample of an annealing phase: from there on other files are read (data.anneal_files).
  // Shared by the functions here; to be set before they are called. Null where the run has none.
  std::shared_ptr<int64_t> anneal_from;
  // Of rows, nothing is known.
  std::function<std::vector<Source>(int64_t sample)> sources = [](int64_t) {
    return std::vector<Source>();
  };
  std::function<Batch(int64_t index)> validation;
  int64_t validation_batches = 0;
  std::vector<ValidationSet> sets;
  // Of answers (answer_data.h): all there are, for what a reference gives to them.
  std::function<Batch(int64_t index)> every_answer;
  int64_t every_answer_batches = 0;
  int64_t train_bytes = 0;
  int64_t validation_bytes = 0;
  // Of held-out text, on average: what turns nats a token into bits a byte. 1 for byte tokens.
  double bytes_per_target = 1;
  TextCodec codec;   // how the tokens are text
  std::string hash;  // of all training and validation bytes, and of the tokenizer

  // Of rows (run_rows.h): what is trained on, in words and as one example; the template and the
  // tokens that the model is given.
  std::string sizes;
  std::string example;
  std::shared_ptr<const ChatTemplate> chat;
  AddedRows added;
  std::string tokenizer_files;  // to be copied beside the model; empty: the codec's is written anew
};

// Opens the data that the recipe's kind reads, and completes the recipe by what it decides.
// `cache`: a folder for what later runs can use again. Throws Error(io) where a file is missing or
// unreadable, Error(config) where none is named, a text is shorter than one sequence, or the
// model's vocabulary is smaller than the tokenizer's.
RunData open_run_data(Recipe& recipe, const std::filesystem::path& cache);

// Of the kind "pretrain": plain text in windows, or the rows of other files.
RunData open_text_or_rows(Recipe& recipe, const std::filesystem::path& cache);

// Whether a run reads rows, or plain text in windows.
bool reads_rows(const Recipe& recipe);

// Tells the data where a run of so many steps begins its annealing phase, where it has one.
void place_annealing(const RunData& data, const Recipe& recipe, int64_t steps);

// Throws Error(config) where nothing is held out.
void check_held_out(const Recipe& recipe, int64_t samples);

}  // namespace ingot
