#include "ingot/text/wordpiece.h"

#include "ingot/text/utf8.h"

namespace ingot {

void WordPieceModel::encode(const Vocabulary& tokens, std::string_view word,
                            std::vector<TokenId>& out) const {
  const size_t before = out.size();
  const bool too_long = utf8_length(word) > longest_word;
  std::string piece;
  for (size_t begin = 0; begin < word.size();) {
    size_t end = too_long ? begin : word.size();
    TokenId found = no_token;
    while (end > begin) {
      piece = begin > 0 ? continuing_prefix : "";
      piece += word.substr(begin, end - begin);
      found = tokens.find(piece);
      if (found != no_token) {
        break;
      }
      end -= utf8_last_char(word.substr(0, end)).bytes;
    }
    if (found == no_token) {
      out.resize(before);
      if (unknown != no_token) {
        out.push_back(unknown);
      }
      return;
    }
    out.push_back(found);
    begin = end;
  }
}

void WordLevelModel::encode(const Vocabulary& tokens, std::string_view word,
                            std::vector<TokenId>& out) const {
  const TokenId found = tokens.find(word);
  if (const TokenId id = found == no_token ? unknown : found; id != no_token) {
    out.push_back(id);
  }
}

}  // namespace ingot
