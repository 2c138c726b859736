#include "ingot/text/utf8.h"

#include <algorithm>
#include <cstring>

namespace ingot {
namespace {

// How a sequence that starts with this byte goes on: its length (0: no such start) and the range of
// its second byte, which excludes long forms, surrogates and too large codes (Unicode table 3-7).
struct Start {
  uint32_t bytes;
  uint8_t low;
  uint8_t high;
};

Start start_of(uint8_t first) {
  if (first < 0x80) {
    return {1, 0, 0};
  }
  if (first < 0xC2) {
    return {0, 0, 0};
  }
  if (first < 0xE0) {
    return {2, 0x80, 0xBF};
  }
  if (first == 0xE0) {
    return {3, 0xA0, 0xBF};
  }
  if (first == 0xED) {
    return {3, 0x80, 0x9F};
  }
  if (first < 0xF0) {
    return {3, 0x80, 0xBF};
  }
  if (first == 0xF0) {
    return {4, 0x90, 0xBF};
  }
  if (first < 0xF4) {
    return {4, 0x80, 0xBF};
  }
  if (first == 0xF4) {
    return {4, 0x80, 0x8F};
  }
  return {0, 0, 0};
}

// Bytes of `text` that fit a character's start, and how many the whole character would have.
struct Fit {
  size_t bytes;
  size_t wanted;
};

Fit fit(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  const Start start = start_of(byte(0));
  if (start.bytes < 2) {
    return {start.bytes, start.bytes};
  }
  size_t i = 1;
  while (i < std::min<size_t>(start.bytes, text.size())) {
    const uint8_t low = i == 1 ? start.low : 0x80;
    const uint8_t high = i == 1 ? start.high : 0xBF;
    if (byte(i) < low || byte(i) > high) {
      break;
    }
    ++i;
  }
  return {i, start.bytes};
}

}  // namespace

Utf8Char utf8_last_char(std::string_view text) {
  size_t at = text.size() - 1;
  while (at > 0 && (static_cast<uint8_t>(text[at]) & 0xC0) == 0x80) {
    --at;
  }
  return utf8_char(text.data() + at);
}

void append_utf8(std::string& text, char32_t code) {
  const auto add = [&](char32_t byte) { text += static_cast<char>(static_cast<uint8_t>(byte)); };
  if (code < 0x80) {
    add(code);
  } else if (code < 0x800) {
    add(0xC0 | code >> 6);
    add(0x80 | (code & 0x3F));
  } else if (code < 0x10000) {
    add(0xE0 | code >> 12);
    add(0x80 | (code >> 6 & 0x3F));
    add(0x80 | (code & 0x3F));
  } else {
    add(0xF0 | code >> 18);
    add(0x80 | (code >> 12 & 0x3F));
    add(0x80 | (code >> 6 & 0x3F));
    add(0x80 | (code & 0x3F));
  }
}

std::string utf8_of(char32_t code) {
  std::string out;
  append_utf8(out, code);
  return out;
}

size_t valid_utf8_prefix(std::string_view text) {
  constexpr uint64_t high_bits = 0x8080808080808080;
  size_t at = 0;
  while (at < text.size()) {
    while (at + 8 <= text.size()) {
      uint64_t eight = 0;
      std::memcpy(&eight, text.data() + at, 8);
      if ((eight & high_bits) != 0) {
        break;
      }
      at += 8;
    }
    if (at == text.size()) {
      break;
    }
    const Fit found = fit(text.substr(at, 4));
    if (found.wanted == 0 || found.bytes < found.wanted) {
      return at;
    }
    at += found.bytes;
  }
  return at;
}

size_t ill_formed_bytes(std::string_view text) {
  return std::max<size_t>(1, fit(text.substr(0, 4)).bytes);
}

bool is_unfinished_char(std::string_view text) {
  if (text.empty() || text.size() > 3) {
    return false;
  }
  const Fit found = fit(text);
  return found.bytes == text.size() && found.bytes < found.wanted;
}

std::string with_replacements(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const size_t good = valid_utf8_prefix(text);
    out += text.substr(0, good);
    text.remove_prefix(good);
    if (!text.empty()) {
      append_utf8(out, replacement_character);
      text.remove_prefix(ill_formed_bytes(text));
    }
  }
  return out;
}

int64_t utf8_length(std::string_view text) {
  return std::count_if(text.begin(), text.end(),
                       [](char byte) { return (static_cast<uint8_t>(byte) & 0xC0) != 0x80; });
}

}  // namespace ingot
