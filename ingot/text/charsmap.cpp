#include "ingot/text/charsmap.h"

#include <cstring>

#include "ingot/base/error.h"

namespace ingot {
namespace {

// Fields of a unit (Darts-clone, include/darts.h, DoubleArrayUnit).
bool has_leaf(uint32_t unit) { return (unit >> 8 & 1) != 0; }
uint32_t value(uint32_t unit) { return unit & 0x7FFFFFFF; }
uint32_t label(uint32_t unit) { return unit & (0x80000000 | 0xFF); }
uint32_t offset(uint32_t unit) { return unit >> 10 << ((unit & (1 << 9)) >> 6); }

constexpr std::string_view alphabet =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

}  // namespace

Charsmap::Charsmap(std::string_view bytes, const std::string& subject) {
  uint32_t size = 0;
  check(bytes.size() > 4, ErrorKind::format, subject, ": the precompiled character map has ",
        bytes.size(), " bytes; it begins with 4 and a trie");
  std::memcpy(&size, bytes.data(), 4);
  check(size >= 4 && size % 4 == 0 && size <= bytes.size() - 4, ErrorKind::format, subject,
        ": the precompiled character map announces a trie of ", size, " bytes and has ",
        bytes.size() - 4);
  units_.resize(size / 4);
  std::memcpy(units_.data(), bytes.data() + 4, size);
  replacements_ = bytes.substr(4 + size_t{size});
  check(!replacements_.empty() && replacements_.back() == '\0', ErrorKind::format, subject,
        ": the replacements of the precompiled character map do not end in a zero byte");
}

// Calls found(bytes, replacement) for the entries that `text` begins with, shortest first, until it
// returns false.
template <class Found>
void Charsmap::walk(std::string_view text, const Found& found) const {
  size_t node = offset(units_[0]);
  for (size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<uint8_t>(text[i]);
    node ^= byte;
    if (byte == 0 || node >= units_.size() || label(units_[node]) != byte) {
      return;
    }
    const uint32_t unit = units_[node];
    node ^= offset(unit);
    if (node >= units_.size()) {
      return;
    }
    if (has_leaf(unit)) {
      const size_t start = value(units_[node]);
      if (start >= replacements_.size() ||
          !found(i + 1, std::string_view(replacements_.data() + start))) {
        return;
      }
    }
  }
}

Charsmap::Match Charsmap::longest(std::string_view text) const {
  Match best;
  walk(text, [&](size_t bytes, std::string_view replacement) {
    best = {bytes, replacement};
    return true;
  });
  return best;
}

Charsmap::Match Charsmap::shortest(std::string_view text) const {
  Match best;
  walk(text, [&](size_t bytes, std::string_view replacement) {
    best = {bytes, replacement};
    return false;
  });
  return best;
}

std::optional<std::string> from_base64(std::string_view text) {
  if (text.size() % 4 != 0) {
    return std::nullopt;
  }
  std::string out;
  const size_t padding = text.ends_with("==") ? 2 : text.ends_with('=') ? 1 : 0;
  for (size_t at = 0; at < text.size(); at += 4) {
    uint32_t bits = 0;
    for (size_t i = at; i < at + 4; ++i) {
      const size_t digit = alphabet.find(text[i]);
      const bool padded = i + padding >= text.size();
      if (digit == std::string_view::npos && !padded) {
        return std::nullopt;
      }
      bits = bits << 6 | static_cast<uint32_t>(padded ? 0 : digit);
    }
    out += static_cast<char>(bits >> 16);
    out += static_cast<char>(bits >> 8);
    out += static_cast<char>(bits);
  }
  out.resize(out.size() - padding);
  return out;
}

std::string to_base64(std::string_view bytes) {
  std::string out;
  for (size_t at = 0; at < bytes.size(); at += 3) {
    const size_t n = std::min<size_t>(3, bytes.size() - at);
    uint32_t bits = 0;
    for (size_t i = 0; i < 3; ++i) {
      bits = bits << 8 | (i < n ? static_cast<uint8_t>(bytes[at + i]) : 0U);
    }
    for (size_t i = 0; i < 4; ++i) {
      out += i <= n ? alphabet[bits >> (18 - 6 * i) & 63] : '=';
    }
  }
  return out;
}

}  // namespace ingot
