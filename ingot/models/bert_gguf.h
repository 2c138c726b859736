#pragma once

#include <filesystem>
#include <string>

#include "ingot/models/bert.h"
#include "ingot/models/export.h"

namespace ingot {

// BERT in GGUF files, as llama.cpp has it under the name "bert": the encoder alone, for embeddings.
// Heads are left out, which the result says; embeddings are means over tokens (pooling_type 1).

// The folder's model with the vocabulary of its tokenizer.json where that is WordPiece. Throws
// Error(config) for an activation that is no GELU.
ExportResult write_bert_gguf(const std::filesystem::path& folder, const std::filesystem::path& path,
                             GgmlType type);

// A model without heads. Throws Error(format) or Error(config) naming the file.
PretrainedBert load_bert_gguf(const std::filesystem::path& path,
                              std::optional<DType> dtype = std::nullopt);

bool is_bert_folder(const std::filesystem::path& path);
bool is_bert_gguf(const std::filesystem::path& path);

}  // namespace ingot
