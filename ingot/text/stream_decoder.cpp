#include "ingot/text/stream_decoder.h"

namespace ingot {

std::string StreamDecoder::add(TokenId id) {
  if (tokenizer_->is_byte_level()) {
    return bytes_.add(tokenizer_->decode_bytes(std::span(&id, 1), options_));
  }
  const std::string token = tokenizer_->token(id);
  if (token.empty() || (options_.skip_special && tokenizer_->is_special(id))) {
    return "";
  }
  window_.push_back(id);
  if (tokenizer_->decoder().looks_ahead(token)) {
    return "";
  }
  const std::string text = waiting();
  // How a token is written depends on whether text stands before it: the last one that has some
  // stays in the window.
  if (!tokenizer_->decode(std::span(&id, 1), options_).empty()) {
    window_.assign(1, id);
  }
  shown_ = window_.size();
  return text;
}

std::string StreamDecoder::waiting() const {
  const std::string before = tokenizer_->decode(std::span(window_).first(shown_), options_);
  return tokenizer_->decode(window_, options_).substr(before.size());
}

std::string StreamDecoder::finish() {
  std::string text = bytes_.finish();
  if (shown_ < window_.size()) {
    text += waiting();
  }
  window_.clear();
  shown_ = 0;
  return text;
}

}  // namespace ingot
