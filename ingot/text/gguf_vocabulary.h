#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ingot/text/tokenizer_spec.h"

namespace ingot {

// The vocabulary in a GGUF file's metadata: its keys tokenizer.ggml.* as plain data
// (ggml-org/ggml, docs/gguf.md, and llama.cpp's src/llama-vocab.cpp for what they mean).
struct GgufVocabulary {
  std::string source;  // what messages call it
  std::string model;   // .model: gpt2 (byte-level BPE), llama (SentencePiece), bert, t5
  std::string pre;     // .pre: the patterns that cut text; "" for none told
  std::vector<std::string> tokens;  // .tokens
  std::vector<float> scores;        // .scores
  std::vector<int32_t> types;       // .token_type: 1 normal, 2 unknown, 3 control, 4 user-defined,
                                    // 5 unused, 6 byte; empty: all normal
  std::vector<std::string> merges;  // .merges: "left right"
  std::string charsmap;             // .precompiled_charsmap
  std::optional<int64_t> bos, eos, unknown, pad;  // .bos_token_id, …; as llama.cpp if absent
  std::optional<int64_t> separator;               // .seperator_token_id (so spelled)
  std::optional<bool> add_bos, add_eos;           // .add_bos_token, .add_eos_token
  std::optional<bool> add_space_prefix, remove_extra_spaces;
};

// The tokenizer that llama.cpp makes of it. Throws Error(format) naming the source and what is
// missing, unknown or contradictory.
TokenizerSpec from_gguf(const GgufVocabulary& vocabulary);

}  // namespace ingot
