#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ingot::jinja {

enum class TokenKind : uint8_t {
  data,            // text outside of tags
  variable_begin,  // {{
  variable_end,
  block_begin,  // {%
  block_end,
  name,
  text,  // a literal, its escapes replaced
  integer,
  real,
  symbol,  // an operator or bracket, as written
  end,
};

struct Token {
  TokenKind kind = TokenKind::end;
  std::string text;     // of data, names, literals and symbols
  int64_t integer = 0;  // the value of an integer
  double real = 0;      // the value of a float
  int32_t line = 1;
  size_t begin = 0, end = 0;  // bytes of the source
};

// The source with the line ends of Unix and without a last one, as Jinja reads templates.
std::string normalized_source(std::string_view source);

// The tokens of a normalized source, the last of kind `end`. White space around tags is treated as
// with trim_blocks and lstrip_blocks: the line end behind a block or comment goes, and so does the
// white space between the start of a line and a block or comment; `-` strips more, `+` keeps.
// Errors begin with the line: "12: …".
std::vector<Token> tokens_of(std::string_view source);

}  // namespace ingot::jinja
