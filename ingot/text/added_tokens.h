#pragma once

#include <string_view>
#include <unordered_map>
#include <vector>

#include "ingot/text/byte_trie.h"
#include "ingot/text/normalizer.h"
#include "ingot/text/tokenizer_spec.h"

namespace ingot {

// Finds added tokens in a text: from the left, of those that begin at one place the longest.
class AddedTokens {
 public:
  AddedTokens() = default;
  AddedTokens(const std::vector<AddedToken>& tokens, const Normalizer& normalizer);

  const AddedToken* find(TokenId id) const;  // null where it is none
  const std::vector<AddedToken>& all() const { return tokens_; }

  enum class Stage : uint8_t { raw, normalized };  // of the text that is searched

  // Calls text(part) and token(id) for the parts of `whole`, in order. `special`: find special
  // tokens too; they are text otherwise.
  template <class OnText, class OnToken>
  void cut(std::string_view whole, Stage stage, bool special, const OnText& text,
           const OnToken& token) const {
    size_t done = 0;
    for (size_t at = 0; at < whole.size();) {
      const Found found = next(whole, at, done, stage, special);
      if (found.token == nullptr) {
        break;
      }
      if (found.begin > done) {
        text(whole.substr(done, found.begin - done));
      }
      token(found.token->id);
      done = at = found.end;
    }
    if (done < whole.size() || whole.empty()) {
      text(whole.substr(done));
    }
  }

 private:
  struct Found {
    const AddedToken* token = nullptr;
    size_t begin = 0;
    size_t end = 0;
  };
  Found next(std::string_view whole, size_t from, size_t done, Stage stage, bool special) const;

  std::vector<AddedToken> tokens_;
  std::unordered_map<TokenId, size_t> by_id_;
  ByteTrie tries_[2];     // by Stage; values are places in tokens_
  bool first_[2][256]{};  // by Stage: bytes that a token begins with
};

}  // namespace ingot
