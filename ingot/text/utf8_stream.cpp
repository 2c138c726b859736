#include "ingot/text/utf8_stream.h"

namespace ingot {

std::string Utf8Stream::add(std::string_view bytes) {
  waiting_ += bytes;
  std::string out;
  std::string_view left = waiting_;
  while (!left.empty()) {
    const size_t good = valid_utf8_prefix(left);
    out += left.substr(0, good);
    left.remove_prefix(good);
    if (left.empty() || is_unfinished_char(left)) {
      break;
    }
    append_utf8(out, replacement_character);
    left.remove_prefix(ill_formed_bytes(left));
  }
  waiting_ = std::string(left);
  return out;
}

std::string Utf8Stream::finish() {
  std::string out = with_replacements(waiting_);
  waiting_.clear();
  return out;
}

}  // namespace ingot
