#include "ingot/text/jinja_token.h"

#include <unicode/uchar.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <optional>

#include "ingot/base/error.h"
#include "ingot/text/jinja_text.h"
#include "ingot/text/utf8.h"

namespace ingot::jinja {
namespace {

constexpr std::array<std::string_view, 26> symbols = {
    "//", "**", "==", "!=", ">=", "<=", "+", "-", "/", "*", "%", "~", "[",
    "]",  "(",  ")",  "{",  "}",  ">",  "<", "=", ".", ":", "|", ",", ";"};

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_word(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
         static_cast<uint8_t>(c) >= 128;
}

class Lexer {
 public:
  explicit Lexer(std::string_view source) : source_(source) {}

  std::vector<Token> run() {
    while (at_ < source_.size()) {
      outside();
    }
    add(TokenKind::end, at_);
    return std::move(tokens_);
  }

 private:
  template <class... Parts>
  [[noreturn]] void fail(int32_t line, const Parts&... parts) const {
    throw Error(ErrorKind::format, concat(line, ": ", parts...));
  }
  bool here(std::string_view word) const { return source_.substr(at_).starts_with(word); }

  Token& add(TokenKind kind, size_t begin) {
    tokens_.push_back({kind, "", 0, 0, line_, begin, at_});
    return tokens_.back();
  }
  void move_to(size_t end) {
    line_ += static_cast<int32_t>(std::count(source_.begin() + static_cast<int64_t>(at_),
                                             source_.begin() + static_cast<int64_t>(end), '\n'));
    at_ = end;
  }
  void skip_space() {
    const std::string_view rest = source_.substr(at_);
    move_to(at_ + (rest.size() - stripped(rest, Side::left).size()));
  }

  // The text up to a tag, less what the tag strips of it.
  std::string_view before(std::string_view text, char sign, bool strips_line) const {
    if (sign == '-') {
      return stripped(text, Side::right);
    }
    if (sign == '+' || !strips_line) {
      return text;
    }
    const size_t newline = text.rfind('\n');
    const size_t start = newline == std::string_view::npos ? 0 : newline + 1;
    const std::string_view indent = text.substr(start);
    const bool from_line_start = start > 0 || line_start_;
    const bool blank = !indent.empty() && stripped(indent).empty();
    return from_line_start && blank ? text.substr(0, start) : text;
  }
  void data(std::string_view text) {
    if (!text.empty()) {
      add(TokenKind::data, at_).text = text;
    }
  }

  // Text up to the next tag, and the tag.
  void outside() {
    size_t tag = source_.find('{', at_);
    while (tag != std::string_view::npos && tag + 1 < source_.size() &&
           std::string_view("%{#").find(source_[tag + 1]) == std::string_view::npos) {
      tag = source_.find('{', tag + 1);
    }
    if (tag == std::string_view::npos || tag + 1 >= source_.size()) {
      data(source_.substr(at_));
      move_to(source_.size());
      return;
    }
    const char kind = source_[tag + 1];
    const char sign = tag + 2 < source_.size() ? source_[tag + 2] : ' ';
    data(before(source_.substr(at_, tag - at_), sign, kind != '{'));
    move_to(tag);
    line_start_ = false;
    const size_t inside = tag + 2 + (sign == '-' || sign == '+' ? 1 : 0);
    if (kind == '#') {
      return comment(inside);
    }
    if (kind == '%') {
      if (const std::optional<size_t> body = raw_tag(tag, "raw")) {
        return raw(*body);
      }
    }
    at_ = inside;
    add(kind == '%' ? TokenKind::block_begin : TokenKind::variable_begin, tag);
    within(kind == '%');
  }

  // What a block's or comment's end strips behind it: all white space (-), nothing (+), or the line
  // end.
  void after(char sign, bool trims_newline) {
    const size_t start = at_;
    if (sign == '-') {
      skip_space();
    } else if (sign != '+' && trims_newline && here("\n")) {
      move_to(at_ + 1);
    }
    line_start_ = at_ > start && source_[at_ - 1] == '\n';
  }

  void comment(size_t inside) {
    const size_t end = source_.find("#}", inside);
    if (end == std::string_view::npos) {
      fail(line_, "{#: comment without end; close it with #}");
    }
    const char sign = end > inside ? source_[end - 1] : ' ';
    move_to(end + 2);
    after(sign, true);
  }

  // The end of `{% raw %}` or `{% endraw %}` at `tag`, where one stands there.
  std::optional<size_t> raw_tag(size_t tag, std::string_view word) const {
    const auto skip = [this](size_t at) {
      const std::string_view rest = source_.substr(at);
      return at + rest.size() - stripped(rest, Side::left).size();
    };
    size_t at = tag + 2;
    at += at < source_.size() && (source_[at] == '-' || source_[at] == '+') ? 1 : 0;
    at = skip(at);
    if (!source_.substr(at).starts_with(word)) {
      return std::nullopt;
    }
    at = skip(at + word.size());
    const bool signed_end = source_.substr(at).starts_with("-%}") ||
                            (word == "endraw" && source_.substr(at).starts_with("+%}"));
    at += signed_end ? 1 : 0;
    return source_.substr(at).starts_with("%}") ? std::optional(at + 2) : std::nullopt;
  }

  void raw(size_t body) {
    const int32_t line = line_;
    move_to(body);
    if (source_[body - 3] == '-') {
      after('-', false);
    }
    for (size_t tag = source_.find("{%", at_); tag != std::string_view::npos;
         tag = source_.find("{%", tag + 2)) {
      if (const std::optional<size_t> end = raw_tag(tag, "endraw")) {
        data(before(source_.substr(at_, tag - at_), source_[tag + 2], true));
        move_to(*end);
        return after(source_[*end - 3], true);
      }
    }
    fail(line, "{% raw %}: block without end; close it with {% endraw %}");
  }

  // The tokens of a tag, to its end.
  void within(bool block) {
    const int32_t line = line_;
    const std::string_view closing = block ? "%}" : "}}";
    std::string open;  // brackets
    for (;;) {
      skip_space();
      if (at_ >= source_.size()) {
        fail(line, block ? "{%" : "{{", ": tag without end; close it with ", closing);
      }
      const char sign = source_[at_];
      const bool has_sign =
          (sign == '-' || (block && sign == '+')) && source_.substr(at_ + 1).starts_with(closing);
      if (open.empty() && (has_sign || here(closing))) {
        const size_t begin = at_;
        move_to(at_ + (has_sign ? 3 : 2));
        add(block ? TokenKind::block_end : TokenKind::variable_end, begin);
        return after(has_sign ? sign : ' ', block);
      }
      token(open);
    }
  }

  void token(std::string& open) {
    const char c = source_[at_];
    if (is_digit(c)) {
      return number();
    }
    if (is_word(c)) {
      return word();
    }
    if (c == '"' || c == '\'') {
      return literal();
    }
    const auto* symbol = std::find_if(symbols.begin(), symbols.end(),
                                      [this](std::string_view one) { return here(one); });
    if (symbol == symbols.end()) {
      fail(line_, "unexpected character '", c, "' in a tag; quote it if it belongs to a text");
    }
    bracket(*symbol, open);
    at_ += symbol->size();
    add(TokenKind::symbol, at_ - symbol->size()).text = *symbol;
  }

  void bracket(std::string_view symbol, std::string& open) const {
    constexpr std::string_view opening = "([{";
    constexpr std::string_view closing = ")]}";
    if (opening.find(symbol) != std::string_view::npos) {
      open += symbol;
    } else if (const size_t kind = closing.find(symbol); kind != std::string_view::npos) {
      if (open.empty() || open.back() != opening[kind]) {
        const std::string wanted =
            open.empty() ? "none is open"
                         : concat("'", closing[opening.find(open.back())], "' is awaited");
        fail(line_, "unexpected '", symbol, "': ", wanted, "; balance the brackets");
      }
      open.pop_back();
    }
  }

  void word() {
    const size_t begin = at_;
    while (at_ < source_.size() && is_word(source_[at_])) {
      ++at_;
    }
    const std::string_view name = source_.substr(begin, at_ - begin);
    if (!is_all(Class::identifier, name)) {
      fail(line_, "'", name, "' is not a name; names are letters, digits and underscores");
    }
    add(TokenKind::name, begin).text = name;
  }

  // The digits at `at`, which single underscores may part.
  static size_t digits(std::string_view text, size_t at, int base) {
    const auto fits = [base](char c) {
      const int value = is_digit(c)            ? c - '0'
                        : c >= 'a' && c <= 'f' ? c - 'a' + 10
                        : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                               : 99;
      return value < base;
    };
    while (at < text.size() &&
           (fits(text[at]) || (text[at] == '_' && at + 1 < text.size() && fits(text[at + 1])))) {
      ++at;
    }
    return at;
  }

  void number() {
    const std::string_view rest = source_.substr(at_);
    constexpr std::string_view letters = "xXoObB";
    const size_t letter = rest.size() > 2 && rest[0] == '0' ? letters.find(rest[1]) : letters.npos;
    const int base = letter == letters.npos ? 10 : letter < 2 ? 16 : letter < 4 ? 8 : 2;
    const size_t start = base == 10 ? 0 : 2;
    size_t end = digits(rest, start, base);
    bool real = false;
    const bool after_point = !tokens_.empty() && tokens_.back().end == at_ &&
                             tokens_.back().kind == TokenKind::symbol && tokens_.back().text == ".";
    if (base == 10 && !after_point) {
      if (end + 1 < rest.size() && rest[end] == '.' && is_digit(rest[end + 1])) {
        end = digits(rest, end + 1, 10);
        real = true;
      }
      if (end < rest.size() && (rest[end] == 'e' || rest[end] == 'E')) {
        const size_t sign = end + 1 < rest.size() && (rest[end + 1] == '+' || rest[end + 1] == '-');
        const size_t exponent = digits(rest, end + 1 + sign, 10);
        real = real || exponent > end + 1 + sign;
        end = exponent > end + 1 + sign ? exponent : end;
      }
    }
    std::string text(rest.substr(start, end - start));
    std::erase(text, '_');
    const size_t begin = at_;
    at_ += end;
    Token& token = add(real ? TokenKind::real : TokenKind::integer, begin);
    token.text = rest.substr(0, end);
    if (real) {
      token.real = std::strtod(text.c_str(), nullptr);
      return;
    }
    const auto read = std::from_chars(text.data(), text.data() + text.size(), token.integer, base);
    if (read.ec != std::errc() || read.ptr != text.data() + text.size()) {
      fail(line_, token.text, ": not an integer of 64 bits; write a float, such as 1e20");
    }
  }

  void literal() {
    const char quote = source_[at_];
    size_t end = at_ + 1;
    while (end < source_.size() && source_[end] != quote) {
      end += source_[end] == '\\' ? 2 : 1;
    }
    if (end >= source_.size()) {
      fail(line_, "text without end; close it with ", quote);
    }
    const size_t begin = at_;
    const int32_t line = line_;
    std::string text = unescaped(source_.substr(begin + 1, end - begin - 1));
    move_to(end + 1);
    Token& token = add(TokenKind::text, begin);
    token.line = line;
    token.text = std::move(text);
  }

  std::string unescaped(std::string_view written) const {
    std::string out;
    for (size_t at = 0; at < written.size();) {
      const char c = written[at++];
      if (c != '\\' || at >= written.size()) {
        out += c;
      } else {
        escape(written, at, out);
      }
    }
    return out;
  }

  // The character of an escape, `at` behind its backslash; moves behind the escape.
  void escape(std::string_view written, size_t& at, std::string& out) const {
    constexpr std::string_view letters = "abfnrtv\\'\"";
    constexpr std::string_view meanings = "\a\b\f\n\r\t\v\\'\"";
    const char c = written[at++];
    if (const size_t known = letters.find(c); known != std::string_view::npos) {
      out += meanings[known];
    } else if (c == 'x' || c == 'u' || c == 'U') {
      const size_t size = c == 'x' ? 2 : c == 'u' ? 4 : 8;
      append_code(written.substr(at, size), size, 16, out);
      at += size;
    } else if (c >= '0' && c <= '7') {
      size_t end = at;
      while (end < written.size() && end < at + 2 && written[end] >= '0' && written[end] <= '7') {
        ++end;
      }
      append_code(written.substr(at - 1, end - at + 1), end - at + 1, 8, out);
      at = end;
    } else if (c != '\n') {  // a backslash at the end of a line joins it with the next
      out += '\\';
      out += c;
    }
  }

  void append_code(std::string_view digits, size_t size, int base, std::string& out) const {
    uint32_t code = 0;
    const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), code, base);
    const bool whole = digits.size() == size && read.ptr == digits.data() + digits.size();
    if (!whole || code > 0x10ffff || (code >= 0xd800 && code < 0xe000)) {
      fail(line_, "'", digits, "' in an escape is not the number of a character; write ", size,
           " digits, and no surrogates");
    }
    append_utf8(out, code);
  }

  std::string_view source_;
  size_t at_ = 0;
  int32_t line_ = 1;
  bool line_start_ = true;  // nothing stands between the start of the line and at_
  std::vector<Token> tokens_;
};

}  // namespace

std::string normalized_source(std::string_view source) {
  std::string out;
  out.reserve(source.size());
  for (size_t i = 0; i < source.size(); ++i) {
    if (source[i] == '\r') {
      i += i + 1 < source.size() && source[i + 1] == '\n' ? 1 : 0;
      out += '\n';
    } else {
      out += source[i];
    }
  }
  if (out.ends_with('\n')) {
    out.pop_back();
  }
  return out;
}

std::vector<Token> tokens_of(std::string_view source) { return Lexer(source).run(); }

}  // namespace ingot::jinja
