#pragma once

#include <filesystem>
#include <memory>

#include "ingot/cli/model_source.h"
#include "ingot/cli/run_data.h"

namespace ingot {

// How a run reads and writes text: the tokenizer of the recipe or of the model it starts from, with
// the tokens that the recipe or the template adds, and the chat template.
struct Reading {
  std::shared_ptr<const Tokenizer> tokenizer;
  std::shared_ptr<const ChatTemplate> chat;  // null where there is none
  AddedRows added;
  std::string files;  // where the tokenizer's files are, to be copied; empty: it was changed
  // The token that ends what the model says: the template's, or the tokenizer's end of text.
  std::optional<TokenId> stop;
};
// Throws Error(config) where there is no tokenizer.
Reading reading_of(const Recipe& recipe);

// Rows of the recipe's files, tokenized once and kept below `cache` by what they were made of. Sets
// model.vocab where tokens were added, and train.steps from train.epochs.
RunData open_rows(Recipe& recipe, const std::filesystem::path& cache);

// Writes tokenizer, template and stop token into a model folder.
struct SaveOptions;
void write_reading(const RunData& data, const std::filesystem::path& folder, SaveOptions& options);

}  // namespace ingot
