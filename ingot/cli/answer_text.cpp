#include "ingot/cli/answer_text.h"

#include <algorithm>
#include <utility>

namespace ingot {

AnswerText::AnswerText(const TextCodec& codec, std::vector<std::string> stop_texts,
                       std::vector<int64_t> stop_tokens)
    : stream_(codec), stop_(std::move(stop_texts)), stop_tokens_(std::move(stop_tokens)) {}

std::string AnswerText::add(int64_t token) {
  const bool stops =
      std::find(stop_tokens_.begin(), stop_tokens_.end(), token) != stop_tokens_.end();
  return stops ? "" : stop_.add(stream_.add(token));
}

std::string AnswerText::finish() {
  std::string out = stop_.add(stream_.finish());
  out += stop_.finish();
  return out;
}

}  // namespace ingot
