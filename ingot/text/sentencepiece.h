#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "ingot/text/tokenizer_spec.h"

namespace ingot {

// SentencePiece's .model files: a protocol buffer `ModelProto` (google/sentencepiece,
// src/sentencepiece_model.proto) with the pieces, the trainer's settings and the normalizer. BPE
// and Unigram models.

// `name` stands for the bytes in messages. Throws Error(format) naming it and what is wrong.
TokenizerSpec parse_sentencepiece(std::string_view bytes, const std::string& name);
TokenizerSpec read_sentencepiece(const std::filesystem::path& path);

// Whether the bytes look like such a model: they begin with a piece.
bool is_sentencepiece(std::string_view bytes);

}  // namespace ingot
