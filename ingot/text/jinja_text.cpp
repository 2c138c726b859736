#include "ingot/text/jinja_text.h"

#include <unicode/ucasemap.h>
#include <unicode/uchar.h>

#include <algorithm>
#include <memory>

#include "ingot/base/error.h"
#include "ingot/text/jinja_budget.h"
#include "ingot/text/utf8.h"

namespace ingot::jinja {
namespace {

using CaseMap = std::unique_ptr<UCaseMap, decltype(&ucasemap_close)>;

template <class Convert>
std::string mapped(std::string_view text, Convert convert) {
  UErrorCode status = U_ZERO_ERROR;
  const CaseMap map(ucasemap_open("", 0, &status), &ucasemap_close);
  check(U_SUCCESS(status), ErrorKind::internal, "unicode: no case mapping: ", u_errorName(status));
  std::string out(text.size() + 16, '\0');
  for (;;) {
    status = U_ZERO_ERROR;
    const int32_t size = convert(map.get(), out.data(), static_cast<int32_t>(out.size()),
                                 text.data(), static_cast<int32_t>(text.size()), &status);
    const bool fits = status != U_BUFFER_OVERFLOW_ERROR;
    check(!fits || U_SUCCESS(status), ErrorKind::internal,
          "unicode: case mapping failed: ", u_errorName(status));
    out.resize(static_cast<size_t>(size));
    if (fits) {
      return out;
    }
  }
}

void check_size(std::string_view text) {
  check(text.size() < (size_t{1} << 30), ErrorKind::format,
        "text: too long for case mapping: ", text.size(), " bytes; split it");
}

bool is_cased(char32_t c) { return u_hasBinaryProperty(static_cast<UChar32>(c), UCHAR_CASED) != 0; }

void append_titled(std::string& out, char32_t c) {
  std::string one;
  append_utf8(one, c);
  if (c < 128) {
    out += static_cast<char>(u_toupper(static_cast<UChar32>(c)));
    return;
  }
  UErrorCode status = U_ZERO_ERROR;
  char buffer[32];
  const CaseMap map(ucasemap_open("", 0, &status), &ucasemap_close);
  const int32_t size = ucasemap_utf8ToTitle(map.get(), buffer, sizeof buffer, one.data(),
                                            static_cast<int32_t>(one.size()), &status);
  out += U_SUCCESS(status) ? std::string(buffer, static_cast<size_t>(size)) : one;
}

bool in_class(Class wanted, char32_t character) {
  const auto c = static_cast<UChar32>(character);
  const auto numeric = static_cast<UNumericType>(u_getIntPropertyValue(c, UCHAR_NUMERIC_TYPE));
  switch (wanted) {
    case Class::alpha: return (U_MASK(u_charType(c)) & U_GC_L_MASK) != 0;
    case Class::decimal: return numeric == U_NT_DECIMAL;
    case Class::digit: return numeric == U_NT_DECIMAL || numeric == U_NT_DIGIT;
    case Class::numeric: return numeric != U_NT_NONE;
    case Class::alnum: return in_class(Class::alpha, character) || numeric != U_NT_NONE;
    case Class::ascii: return c < 128;
    case Class::printable: return is_printable(character);
    case Class::space: return is_space(character);
    default: return false;
  }
}

bool is_identifier(std::string_view text) {
  for (size_t at = 0; at < text.size();) {
    const bool first = at == 0;
    const auto c = static_cast<UChar32>(next_character(text, at));
    const bool fits =
        c == '_' || u_hasBinaryProperty(c, first ? UCHAR_XID_START : UCHAR_XID_CONTINUE);
    if (!fits) {
      return false;
    }
  }
  return !text.empty();
}

// Upper, lower and title ask about cased letters only, of which there must be one.
bool is_cased_as(Class wanted, std::string_view text) {
  bool any = false;
  bool after_cased = false;
  for (size_t at = 0; at < text.size();) {
    const auto c = static_cast<UChar32>(next_character(text, at));
    const bool up = u_isUUppercase(c) || u_istitle(c);
    const bool low = u_isULowercase(c);
    if (wanted == Class::upper ? low || u_istitle(c) : wanted == Class::lower ? up : false) {
      return false;
    }
    if (wanted == Class::title && ((up && after_cased) || (low && !after_cased))) {
      return false;
    }
    after_cased = up || low;
    any = any || (wanted == Class::upper ? up : wanted == Class::lower ? low : after_cased);
  }
  return any;
}

}  // namespace

void check_utf8(std::string_view text, std::string_view what) {
  const size_t at = valid_utf8_prefix(text);
  check(at == text.size(), ErrorKind::format, what, ": not valid UTF-8: byte ",
        at < text.size() ? static_cast<int>(static_cast<uint8_t>(text[at])) : 0, " at offset ", at,
        "; convert it to UTF-8");
}

char32_t next_character(std::string_view text, size_t& at) {
  const Utf8Char character = utf8_char(text.data() + at);
  at += character.bytes;
  return character.code;
}

size_t byte_of(std::string_view text, int64_t index) {
  size_t at = 0;
  while (index > 0 && at < text.size()) {
    ++at;
    while (at < text.size() && (static_cast<uint8_t>(text[at]) & 0xc0) == 0x80) {
      ++at;
    }
    --index;
  }
  return at;
}

std::vector<std::string> characters_of(std::string_view text) {
  std::vector<std::string> out;
  for (size_t at = 0; at < text.size();) {
    const size_t start = at;
    next_character(text, at);
    out.emplace_back(text.substr(start, at - start));
  }
  return out;
}

bool is_space(char32_t character) {
  if (character < 128) {
    return character == ' ' || (character >= 9 && character <= 13) ||
           (character >= 28 && character <= 31);
  }
  return character == 0x85 || u_isJavaSpaceChar(static_cast<UChar32>(character));
}

bool is_printable(char32_t character) {
  if (character < 128) {
    return character >= 32 && character < 127;
  }
  constexpr uint32_t hidden = U_GC_C_MASK | U_GC_Z_MASK;
  return (U_MASK(u_charType(static_cast<UChar32>(character))) & hidden) == 0;
}

std::string_view stripped(std::string_view text, Side side, std::optional<std::string_view> set) {
  const auto goes = [&set](std::string_view one, char32_t c) {
    return set ? set->find(one) != std::string_view::npos : is_space(c);
  };
  while (side != Side::right && !text.empty()) {
    size_t at = 0;
    const char32_t c = next_character(text, at);
    if (!goes(text.substr(0, at), c)) {
      break;
    }
    text.remove_prefix(at);
  }
  while (side != Side::left && !text.empty()) {
    size_t start = text.size() - 1;
    while (start > 0 && (static_cast<uint8_t>(text[start]) & 0xc0) == 0x80) {
      --start;
    }
    size_t at = start;
    const char32_t c = next_character(text, at);
    if (!goes(text.substr(start), c)) {
      break;
    }
    text.remove_suffix(text.size() - start);
  }
  return text;
}

std::string upper(std::string_view text) {
  check_size(text);
  return mapped(text, ucasemap_utf8ToUpper);
}

std::string lower(std::string_view text) {
  check_size(text);
  return mapped(text, ucasemap_utf8ToLower);
}

std::string folded(std::string_view text) {
  check_size(text);
  return mapped(text, ucasemap_utf8FoldCase);
}

std::string title(std::string_view text) {
  std::string out;
  std::string word;  // the cased letters of a word: made lower together, for final sigmas
  size_t first = 0;  // bytes of the word's first letter in lower case
  const auto end_word = [&] {
    out += lower(word).substr(first);
    word.clear();
    first = 0;
  };
  for (size_t at = 0; at < text.size();) {
    const size_t start = at;
    const char32_t c = next_character(text, at);
    const std::string_view one = text.substr(start, at - start);
    if (!is_cased(c)) {
      end_word();
      out += one;
      continue;
    }
    if (word.empty()) {
      append_titled(out, c);
      first = lower(one).size();
    }
    word += one;
  }
  end_word();
  return out;
}

std::string capitalized(std::string_view text) {
  if (text.empty()) {
    return "";
  }
  size_t at = 0;
  std::string out;
  append_titled(out, next_character(text, at));
  return out + lower(text.substr(at));
}

bool is_all(Class wanted, std::string_view text) {
  if (wanted == Class::identifier) {
    return is_identifier(text);
  }
  if (wanted == Class::upper || wanted == Class::lower || wanted == Class::title) {
    return is_cased_as(wanted, text);
  }
  for (size_t at = 0; at < text.size();) {
    if (!in_class(wanted, next_character(text, at))) {
      return false;
    }
  }
  return !text.empty() || wanted == Class::ascii || wanted == Class::printable;
}

std::vector<std::string_view> split(std::string_view text,
                                    std::optional<std::string_view> separator, int64_t most) {
  std::vector<std::string_view> parts;
  const auto may_cut = [&] { return most < 0 || static_cast<int64_t>(parts.size()) < most; };
  if (separator) {
    for (size_t at = text.find(*separator); at != std::string_view::npos && may_cut();
         at = text.find(*separator)) {
      parts.push_back(text.substr(0, at));
      text.remove_prefix(at + separator->size());
    }
    parts.push_back(text);
    return parts;
  }
  text = stripped(text, Side::left);
  while (!text.empty() && may_cut()) {
    size_t at = 0;
    size_t end = 0;
    while (end < text.size() && !is_space(next_character(text, at))) {
      end = at;
    }
    parts.push_back(text.substr(0, end));
    text = stripped(text.substr(end), Side::left);
  }
  if (!text.empty()) {
    parts.push_back(text);
  }
  return parts;
}

std::vector<std::string_view> split_from_right(std::string_view text,
                                               std::optional<std::string_view> separator,
                                               int64_t most) {
  std::vector<std::string_view> parts;
  const auto may_cut = [&] { return most < 0 || static_cast<int64_t>(parts.size()) < most; };
  if (separator) {
    for (size_t at = text.rfind(*separator); at != std::string_view::npos && may_cut();
         at = text.rfind(*separator)) {
      parts.push_back(text.substr(at + separator->size()));
      text = text.substr(0, at);
    }
    parts.push_back(text);
  } else {
    const std::vector<std::string_view> words = split(text, std::nullopt, -1);
    const auto count = static_cast<int64_t>(words.size());
    const int64_t cut = most < 0 ? count : std::min(most, count);
    for (int64_t i = 0; i < cut; ++i) {
      parts.push_back(words[static_cast<size_t>(count - 1 - i)]);
    }
    if (cut < count) {
      const std::string_view& last = words[static_cast<size_t>(count - cut - 1)];
      const auto end = static_cast<size_t>(last.data() + last.size() - text.data());
      parts.push_back(stripped(text.substr(0, end), Side::right));
    }
  }
  std::reverse(parts.begin(), parts.end());
  return parts;
}

std::vector<std::string_view> lines_of(std::string_view text, bool keep_ends) {
  const auto ends_line = [](char32_t c) {
    return (c >= 10 && c <= 13) || (c >= 28 && c <= 30) || c == 0x85 || c == 0x2028 || c == 0x2029;
  };
  std::vector<std::string_view> lines;
  size_t start = 0;
  for (size_t at = 0; at < text.size();) {
    const size_t end = at;
    const char32_t c = next_character(text, at);
    if (!ends_line(c)) {
      continue;
    }
    at += c == '\r' && at < text.size() && text[at] == '\n' ? 1 : 0;
    lines.push_back(text.substr(start, (keep_ends ? at : end) - start));
    start = at;
  }
  if (start < text.size()) {
    lines.push_back(text.substr(start));
  }
  return lines;
}

int64_t count_of(std::string_view text, std::string_view part) {
  if (part.empty()) {
    return utf8_length(text) + 1;
  }
  int64_t count = 0;
  for (size_t at = text.find(part); at != std::string_view::npos;
       at = text.find(part, at + part.size())) {
    ++count;
  }
  return count;
}

std::string replaced(std::string_view text, std::string_view old, std::string_view with,
                     int64_t most, Budget& budget) {
  std::string out;
  int64_t left = most < 0 ? INT64_MAX : most;
  const auto put = [&](std::string_view part) {
    budget.bytes(part.size());
    out += part;
  };
  if (old.empty()) {
    for (; left > 0 && !text.empty(); --left) {
      size_t at = 0;
      next_character(text, at);
      put(with);
      put(text.substr(0, at));
      text.remove_prefix(at);
    }
    put(text);
    put(left > 0 ? with : "");
    return out;
  }
  for (size_t at = text.find(old); at != std::string_view::npos && left > 0; at = text.find(old)) {
    put(text.substr(0, at));
    put(with);
    text.remove_prefix(at + old.size());
    --left;
  }
  put(text);
  return out;
}

std::string justified(std::string_view text, int64_t width, std::string_view fill, char align,
                      Budget& budget) {
  const int64_t size = utf8_length(text);
  if (width <= size) {
    return std::string(text);
  }
  const int64_t missing = width - size;
  budget.bytes(missing);
  // Python's center puts the odd one on the left where the width is odd too.
  const int64_t left = align == '<'   ? 0
                       : align == '>' ? missing
                                      : missing / 2 + (missing & width & 1);
  std::string out;
  for (int64_t i = 0; i < left; ++i) {
    out += fill;
  }
  out += text;
  for (int64_t i = left; i < missing; ++i) {
    out += fill;
  }
  return out;
}

}  // namespace ingot::jinja
