#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "ingot/text/vocabulary.h"

namespace ingot {

// WordPiece: from the left, always the longest token, with a prefix on all but the first; a word
// that does not work out is unknown. google-research/bert, tokenization.py: WordpieceTokenizer.
struct WordPieceModel {
  TokenId unknown = no_token;
  std::string continuing_prefix = "##";
  int64_t longest_word = 100;  // characters; a longer word is unknown

  void encode(const Vocabulary& tokens, std::string_view word, std::vector<TokenId>& out) const;
};

// A word is a token or unknown.
struct WordLevelModel {
  TokenId unknown = no_token;  // no_token: unknown words are left out

  void encode(const Vocabulary& tokens, std::string_view word, std::vector<TokenId>& out) const;
};

}  // namespace ingot
