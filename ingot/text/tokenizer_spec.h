#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ingot/text/bpe.h"
#include "ingot/text/vocabulary.h"

namespace ingot {

// A token that is found in the text before anything else is done to it.
struct AddedToken {
  TokenId id = no_token;
  std::string content;
  bool single_word = false;  // only where no word character stands beside it
  bool lstrip = false;       // takes the white space before it
  bool rstrip = false;       // takes the white space behind it
  bool normalized = false;   // is found in normalized text
  bool special = false;      // structure and not text: <s>, <|im_end|>
};

// Everything that a tokenizer is made from, as plain data: what the readers of the file formats
// produce, and what is written as tokenizer.json. The four components are kept as tokenizer.json
// spells them ("null" for none).
struct TokenizerSpec {
  enum class Model : uint8_t { bpe, unigram, wordpiece, wordlevel };

  std::string source;  // what messages call it: the file's path
  Model model = Model::bpe;
  std::vector<std::string> tokens;  // by id, in tokenizer.json's spelling; "" where an id is unused
  TokenId unknown = no_token;

  std::vector<MergeRule> merges;  // bpe
  std::vector<uint32_t> ranks;    // bpe without merges: see BpeModel's second constructor
  bool fuse_unknown = false;      // bpe
  bool ignore_merges = false;     // bpe
  bool byte_fallback = false;     // bpe, unigram
  std::string continuing_prefix;  // bpe, wordpiece
  std::string end_suffix;         // bpe
  std::vector<double> scores;     // unigram; NaN for tokens that are no text
  bool single_precision = false;  // unigram: SentencePiece's arithmetic
  int64_t longest_word = 100;     // wordpiece

  std::vector<AddedToken> added;
  std::string normalizer = "null";
  std::string pre_tokenizer = "null";
  std::string post_processor = "null";
  std::string decoder = "null";

  std::optional<TokenId> bos, eos, pad;  // where the files tell them
};

// The name of a model as tokenizer.json spells it: "BPE".
std::string_view name(TokenizerSpec::Model model);

// XXH3-128 over what decides ids and text: model, tokens, merges or scores, components, added
// tokens. Two files of different formats may spell one tokenizer and yet differ here.
std::string hash_of(const TokenizerSpec& spec);

}  // namespace ingot
