#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ingot {

// Properties of characters by the Unicode data of the ICU library.

bool is_space(char32_t c);       // White_Space
bool is_word(char32_t c);        // Alphabetic, mark, decimal number, connector, join control: \w
bool is_mark(char32_t c);        // M
bool is_nonspacing(char32_t c);  // Mn
bool is_numeric(char32_t c);     // N
bool is_other(char32_t c);       // C: control, format, surrogate, private, unassigned
bool is_control_or_format(char32_t c);  // C without the unassigned
bool is_punctuation(char32_t c);        // P, and what ASCII calls so: $+<=>^`|~
bool is_cjk(char32_t c);                // ideographs that BERT sets apart

// Full lower-case mapping of one character without regard to its neighbours.
void append_lower(std::string& text, char32_t c);

enum class NormalForm : uint8_t { nfc, nfd, nfkc, nfkd };
// Valid UTF-8 in a normal form.
std::string normalized(std::string_view text, NormalForm form);
bool is_normalized(std::string_view text, NormalForm form);

// Ends of the extended grapheme clusters of a valid text, ascending.
std::vector<size_t> grapheme_ends(std::string_view text);

// A number that is equal for characters of one script.
int32_t script_of(char32_t c);
int32_t han_script();
bool is_kana(char32_t c);  // Hiragana or Katakana

// What the patterns of byte-level tokenizers ask of a character; flags to be combined.
struct CharClass {
  static constexpr uint8_t letter = 1;   // L
  static constexpr uint8_t number = 2;   // N
  static constexpr uint8_t space = 4;    // White_Space
  static constexpr uint8_t newline = 8;  // \r and \n
  static constexpr uint8_t upper =
      16;  // Lu, Lt, Lm, Lo, M: may stand in the capital part of a word
  static constexpr uint8_t lower = 32;  // Ll, Lm, Lo, M: may stand in its small part
};

// CharClass flags of all characters, by code.
using CharClassTable = std::vector<uint8_t>;
const CharClassTable& char_classes();  // made at the first call

}  // namespace ingot
