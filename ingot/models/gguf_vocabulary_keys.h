#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "ingot/io/gguf_value.h"

namespace ingot {

// What the tokenizer.ggml.* keys of a GGUF file say: a tokenizer as llama.cpp knows it.
struct GgufTokens {
  std::string model;  // "llama": pieces with scores, bytes as a fall-back; "gpt2": bytes and merges
  std::string pre;    // the name of gpt2's way of dividing text before merging; "" for llama
  std::vector<std::string> tokens;
  std::vector<float> scores;        // llama only: the higher is merged first
  std::vector<int32_t> types;       // see below
  std::vector<std::string> merges;  // gpt2 only: "a b", the first is merged first
  std::optional<int64_t> bos, eos, end_of_turn, unknown, padding;
  std::optional<bool> add_bos, add_eos, add_space_prefix;
  std::string chat_template;
};

// The numbers in `types`.
enum class GgufTokenType : int32_t {
  normal = 1,
  unknown = 2,
  control = 3,
  user_defined = 4,
  unused = 5,
  byte = 6,
};

// Empty where the file has no tokens. Throws Error(format) where the lists are not equally long.
std::optional<GgufTokens> gguf_tokens_from(const GgufMetadata& metadata, const std::string& file);
void gguf_tokens_to(const GgufTokens& tokens, GgufMetadata& out);

// The tokens of a tokenizer.json (with the folder's other files, null where absent) for a model of
// `vocab` rows, which unused tokens fill up. Empty where llama.cpp has no tokenizer that certainly
// does the same; `why` then says what stands against it.
std::optional<GgufTokens> gguf_tokens_of(const nlohmann::json& tokenizer,
                                         const nlohmann::json& tokenizer_config,
                                         const nlohmann::json& generation_config, int64_t vocab,
                                         std::string& why);

// For models whose tokens are the 256 bytes: gpt2's letters for them and no merges.
GgufTokens gguf_tokens_of_bytes(int64_t vocab);

}  // namespace ingot
