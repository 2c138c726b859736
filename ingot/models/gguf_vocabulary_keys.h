#pragma once

#include <optional>
#include <string>

#include "ingot/io/gguf_value.h"
#include "ingot/text/gguf_vocabulary.h"

namespace ingot {

// The tokenizer.ggml.* keys of a GGUF file's metadata, and tokenizer.chat_template. Empty where the
// file has no tokens. Throws Error(format) naming `file` and the key that has another type, or
// where the lists are not equally long.
std::optional<GgufVocabulary> gguf_vocabulary_from(const GgufMetadata& metadata,
                                                   const std::string& file);
void gguf_vocabulary_to(const GgufVocabulary& vocabulary, GgufMetadata& out);

}  // namespace ingot
