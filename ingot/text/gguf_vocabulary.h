#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
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
  std::vector<int32_t> types;       // .token_type, see GgufTokenType; empty: all normal
  std::vector<std::string> merges;  // .merges: "left right"
  std::string charsmap;             // .precompiled_charsmap
  std::optional<int64_t> bos, eos, unknown, pad;  // .bos_token_id, …; as llama.cpp if absent
  std::optional<int64_t> separator;               // .seperator_token_id (so spelled)
  std::optional<int64_t> end_of_turn;             // .eot_token_id
  std::optional<bool> add_bos, add_eos;           // .add_bos_token, .add_eos_token
  std::optional<bool> add_space_prefix, remove_extra_spaces;
  std::string chat_template;  // tokenizer.chat_template
};

// How the values "llama-bpe" and "qwen2" of .pre cut text (llama.cpp, src/llama-vocab.cpp).
inline constexpr std::string_view gguf_llama3_pattern =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
inline constexpr std::string_view gguf_qwen2_pattern =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

// The numbers in `types`.
enum class GgufTokenType : int32_t {
  normal = 1,
  unknown = 2,
  control = 3,
  user_defined = 4,
  unused = 5,
  byte = 6,
};

// The tokenizer that llama.cpp makes of it. Throws Error(format) naming the source and what is
// missing, unknown or contradictory.
TokenizerSpec from_gguf(const GgufVocabulary& vocabulary);

// The value of .pre with which llama.cpp cuts a text by each of these patterns in turn, matches and
// gaps alike; "" where it has none. Empty patterns have none.
std::string gguf_pre_of(const std::vector<std::string>& patterns);

// The vocabulary of a tokenizer.json (with the folder's other files, null where absent) for a model
// of `vocab` rows, which unused tokens fill up. Empty where llama.cpp has no tokenizer that
// certainly does the same; `why` then says what stands against it.
std::optional<GgufVocabulary> to_gguf(const nlohmann::json& tokenizer,
                                      const nlohmann::json& tokenizer_config,
                                      const nlohmann::json& generation_config, int64_t vocab,
                                      std::string& why);

// For models whose tokens are the 256 bytes: gpt2's letters for them and no merges.
GgufVocabulary bytes_to_gguf(int64_t vocab);

}  // namespace ingot
