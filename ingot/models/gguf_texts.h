#pragma once

#include <string>
#include <vector>

#include "ingot/io/gguf.h"
#include "ingot/models/stored_model.h"

namespace ingot {

// The config.json and the other files that a GGUF file was made from are kept in it under these
// keys, so that a folder made of it again is the same; other programs pass over them.
inline constexpr std::string_view gguf_config_key = "ingot.config";
inline constexpr std::string_view gguf_text_prefix = "ingot.file.";

// Fills texts and tokenizer from a file's metadata.
void take_texts(const GgufFile& file, StoredModel& out);

// Sets the tokenizer's keys and those above. Returns a line for everything that the model lacks in
// a GGUF file: a tokenizer, say.
std::vector<std::string> put_texts(const StoredModel& model, GgufMetadata& out);

}  // namespace ingot
