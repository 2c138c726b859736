#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ingot::jinja {

class Budget;

// Python's texts over UTF-8: positions count characters (code points). All texts here are valid
// UTF-8 (text/utf8.h); check_utf8 is the door. Case and character classes are those of ICU's
// Unicode version.

// Throws Error(format) unless `text` is valid UTF-8: `<what>: not valid UTF-8: byte 0xff at …`.
void check_utf8(std::string_view text, std::string_view what);

// The character that starts at byte `at`, which moves behind it.
char32_t next_character(std::string_view text, size_t& at);
// The byte where character `index` starts; the size beyond the last.
size_t byte_of(std::string_view text, int64_t index);
std::vector<std::string> characters_of(std::string_view text);

bool is_space(char32_t character);
bool is_printable(char32_t character);

enum class Side : uint8_t { both, left, right };
// Without the characters of `set` (white space if absent) at its ends.
std::string_view stripped(std::string_view text, Side side = Side::both,
                          std::optional<std::string_view> set = std::nullopt);

std::string upper(std::string_view text);
std::string lower(std::string_view text);
std::string title(std::string_view text);        // each word's first letter
std::string capitalized(std::string_view text);  // the first letter of all
std::string folded(std::string_view text);       // for comparing without case

enum class Class : uint8_t {
  alnum,
  alpha,
  ascii,
  decimal,
  digit,
  identifier,
  lower,
  numeric,
  printable,
  space,
  title,
  upper
};
bool is_all(Class wanted, std::string_view text);  // Python's str.is…()

// At most `most` cuts (−1: any number); absent separator: at runs of white space, none of them
// kept.
std::vector<std::string_view> split(std::string_view text,
                                    std::optional<std::string_view> separator, int64_t most);
std::vector<std::string_view> split_from_right(std::string_view text,
                                               std::optional<std::string_view> separator,
                                               int64_t most);
std::vector<std::string_view> lines_of(std::string_view text, bool keep_ends);

int64_t count_of(std::string_view text, std::string_view part);

// With the first `most` (−1: all) of `old` replaced; an empty one stands before each character.
std::string replaced(std::string_view text, std::string_view old, std::string_view with,
                     int64_t most, Budget& budget);
// Filled up to `width` characters: '<' behind the text, '>' before it, '^' on both sides.
std::string justified(std::string_view text, int64_t width, std::string_view fill, char align,
                      Budget& budget);

}  // namespace ingot::jinja
