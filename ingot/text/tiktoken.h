#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ingot/text/tokenizer_spec.h"

namespace ingot {

// tiktoken's rank files: a token in Base64 and its rank, which is its id, a line. What such a file
// does not hold is told apart: the pattern that cuts text, and the special tokens.
struct TiktokenEncoding {
  std::string name;
  std::string pattern;
  std::vector<std::pair<std::string, TokenId>> special;
};

// r50k_base (also gpt2), p50k_base, p50k_edit, cl100k_base, o200k_base; nothing for another name.
std::optional<TiktokenEncoding> tiktoken_encoding(std::string_view name);

// Throws Error(format) naming file and line of what is no token and rank.
TokenizerSpec read_tiktoken(const std::filesystem::path& path, const TiktokenEncoding& encoding);

// The encoding of a rank file: what a JSON beside it says (NAME.meta.json for NAME.tiktoken, with
// pat_str and special_tokens), else the one of the file's name, else, by its number of tokens,
// Llama 3's. Throws Error(config) where nothing tells.
TiktokenEncoding encoding_beside(const std::filesystem::path& path);

}  // namespace ingot
