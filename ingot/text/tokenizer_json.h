#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "ingot/text/tokenizer_spec.h"

namespace ingot {

// tokenizer.json, the format of Hugging Face's tokenizers library.

// `name` stands for the text in messages. Throws Error(format) naming it and the part that is
// missing, unknown or ill-formed; a merge of tokens that are not in the vocabulary by its line.
TokenizerSpec parse_tokenizer_json(std::string_view text, const std::string& name);
TokenizerSpec read_tokenizer_json(const std::filesystem::path& path);

// A tokenizer.json that says the same. Throws Error(format) where the format cannot: components of
// SentencePiece or GGUF files that it has no words for.
std::string to_tokenizer_json(const TokenizerSpec& spec);

// A vocabulary and merges in the form of GPT-2: vocab.json, an object of ids by token, and
// merges.txt, two tokens a line. Byte-level, cut by GPT-2's pattern.
TokenizerSpec read_vocab_and_merges(const std::filesystem::path& vocab,
                                    const std::filesystem::path& merges);

}  // namespace ingot
