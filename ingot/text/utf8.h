#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace ingot {

// UTF-8 (RFC 3629): shortest forms only, no surrogates, nothing above U+10FFFF.

inline constexpr char32_t replacement_character = 0xFFFD;

// A character and the bytes it takes.
struct Utf8Char {
  char32_t code;
  uint32_t bytes;
};

// The first character of valid UTF-8; `at` must lie before the end.
inline Utf8Char utf8_char(const char* at) {
  const auto byte = [at](int i) { return static_cast<char32_t>(static_cast<uint8_t>(at[i])); };
  const char32_t first = byte(0);
  if (first < 0x80) {
    return {first, 1};
  }
  if (first < 0xE0) {
    return {(first & 0x1F) << 6 | (byte(1) & 0x3F), 2};
  }
  if (first < 0xF0) {
    return {(first & 0x0F) << 12 | (byte(1) & 0x3F) << 6 | (byte(2) & 0x3F), 3};
  }
  return {(first & 0x07) << 18 | (byte(1) & 0x3F) << 12 | (byte(2) & 0x3F) << 6 | (byte(3) & 0x3F),
          4};
}

// The last character of a non-empty valid text.
Utf8Char utf8_last_char(std::string_view text);

void append_utf8(std::string& text, char32_t code);
std::string utf8_of(char32_t code);

// Bytes at the start of `text` that are valid UTF-8 and end with a whole character.
size_t valid_utf8_prefix(std::string_view text);
inline bool is_valid_utf8(std::string_view text) { return valid_utf8_prefix(text) == text.size(); }

// Bytes that the ill-formed sequence at the start of `text` takes: the longest start of a character
// or else one byte (the Unicode Standard's "maximal subpart", section 3.9). `text` must begin with
// one.
size_t ill_formed_bytes(std::string_view text);

// Whether `text`, the start of an ill-formed sequence, could become a character by more bytes.
bool is_unfinished_char(std::string_view text);

// The text with U+FFFD in the place of each ill-formed sequence.
std::string with_replacements(std::string_view text);

// Characters of a valid text.
int64_t utf8_length(std::string_view text);

}  // namespace ingot
