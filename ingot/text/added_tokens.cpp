#include "ingot/text/added_tokens.h"

#include <algorithm>

#include "ingot/text/unicode.h"
#include "ingot/text/utf8.h"

namespace ingot {
namespace {

bool word_before(std::string_view text) {
  return !text.empty() && is_word(utf8_last_char(text).code);
}
bool word_behind(std::string_view text) {
  return !text.empty() && is_word(utf8_char(text.data()).code);
}

size_t spaces_at_end(std::string_view text) {
  size_t bytes = 0;
  while (bytes < text.size()) {
    const Utf8Char c = utf8_last_char(text.substr(0, text.size() - bytes));
    if (!is_space(c.code)) {
      break;
    }
    bytes += c.bytes;
  }
  return bytes;
}

size_t spaces_at_start(std::string_view text) {
  size_t bytes = 0;
  while (bytes < text.size() && is_space(utf8_char(text.data() + bytes).code)) {
    bytes += utf8_char(text.data() + bytes).bytes;
  }
  return bytes;
}

}  // namespace

AddedTokens::AddedTokens(const std::vector<AddedToken>& tokens, const Normalizer& normalizer)
    : tokens_(tokens) {
  for (size_t i = 0; i < tokens_.size(); ++i) {
    const AddedToken& token = tokens_[i];
    by_id_[token.id] = i;
    const size_t stage = token.normalized ? 1 : 0;
    const std::string content =
        token.normalized ? normalizer.of_added(token.content) : token.content;
    if (!content.empty()) {
      tries_[stage].add(content, static_cast<TokenId>(i));
      first_[stage][static_cast<uint8_t>(content.front())] = true;
    }
  }
}

const AddedToken* AddedTokens::find(TokenId id) const {
  const auto found = by_id_.find(id);
  return found == by_id_.end() ? nullptr : &tokens_[found->second];
}

AddedTokens::Found AddedTokens::next(std::string_view whole, size_t from, size_t done, Stage stage,
                                     bool special) const {
  const auto s = static_cast<size_t>(stage);
  if (tries_[s].empty()) {
    return {};
  }
  for (size_t at = from; at < whole.size(); ++at) {
    if (!first_[s][static_cast<uint8_t>(whole[at])]) {
      continue;
    }
    const ByteTrie::Match match = tries_[s].longest(whole.substr(at));
    if (match.bytes == 0) {
      continue;
    }
    const AddedToken& token = tokens_[static_cast<size_t>(match.value)];
    const std::string_view behind = whole.substr(at + match.bytes);
    const bool alone =
        !token.single_word || (!word_before(whole.substr(0, at)) && !word_behind(behind));
    if ((token.special && !special) || !alone) {
      at += match.bytes - 1;  // the places within it are not tried: as the reference does
      continue;
    }
    size_t begin = at;
    if (token.lstrip) {
      begin = std::max(done, at - spaces_at_end(whole.substr(0, at)));
    }
    return {&token, begin, at + match.bytes + (token.rstrip ? spaces_at_start(behind) : 0)};
  }
  return {};
}

}  // namespace ingot
