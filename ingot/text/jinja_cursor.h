#pragma once

#include <string_view>
#include <utility>
#include <vector>

#include "ingot/base/error.h"
#include "ingot/text/jinja_text.h"
#include "ingot/text/jinja_token.h"
#include "ingot/text/jinja_tree.h"

namespace ingot::jinja {

// Brackets, blocks and operators in one another, beyond which a template is refused.
inline constexpr int32_t deepest_nesting = 150;
inline constexpr int32_t tallest_expression = 400;  // a chain of that many operators

// The parser's place among the tokens of a template.
class Cursor {
 public:
  explicit Cursor(std::string_view source) : source_(source), tokens_(tokens_of(source)) {}

  const Token& now() const { return tokens_[at_]; }
  const Token& ahead() const { return tokens_[std::min(at_ + 1, tokens_.size() - 1)]; }
  const Token& last() const { return tokens_[at_ == 0 ? 0 : at_ - 1]; }
  Token take() { return now().kind == TokenKind::end ? now() : tokens_[at_++]; }
  bool is(TokenKind kind) const { return now().kind == kind; }
  bool is_symbol(std::string_view text) const {
    return is(TokenKind::symbol) && now().text == text;
  }
  bool is_name(std::string_view text) const { return is(TokenKind::name) && now().text == text; }
  bool skip_symbol(std::string_view text) { return is_symbol(text) && (++at_, true); }
  bool skip_name(std::string_view text) { return is_name(text) && (++at_, true); }

  template <class... Parts>
  [[noreturn]] void fail(int32_t line, const Parts&... parts) const {
    throw Error(ErrorKind::format, concat(line, ": ", parts...));
  }
  // The present token as written, for messages.
  std::string found() const {
    return is(TokenKind::end)
               ? "the end of the template"
               : concat("'", source_.substr(now().begin, now().end - now().begin), "'");
  }
  void expect_symbol(std::string_view text, std::string_view where) {
    if (!skip_symbol(text)) {
      fail(now().line, where, ": expected '", text, "', found ", found(),
           "; mend the spelling there");
    }
  }
  std::string expect_name(std::string_view where) {
    if (!is(TokenKind::name)) {
      fail(now().line, where, ": expected a name, found ", found(), "; mend the spelling there");
    }
    return take().text;
  }
  void expect_end(std::string_view where) {
    if (!is(TokenKind::block_end)) {
      fail(now().line, where, ": expected '%}', found ", found(), "; mend the spelling there");
    }
    take();
  }

  // Counts recursion of the parser.
  class Nesting {
   public:
    explicit Nesting(Cursor& cursor) : cursor_(cursor) {
      if (++cursor_.depth_ > deepest_nesting) {
        cursor_.fail(cursor_.now().line, "brackets and blocks lie deeper than ", deepest_nesting,
                     " in one another; set parts as variables first");
      }
    }
    ~Nesting() { --cursor_.depth_; }
    Nesting(const Nesting&) = delete;
    Nesting& operator=(const Nesting&) = delete;

   private:
    Cursor& cursor_;
  };

 private:
  std::string_view source_;
  std::vector<Token> tokens_;
  size_t at_ = 0;
  int32_t depth_ = 0;
};

// Special names that a macro receives only if its body mentions them.
struct Mentions {
  bool caller = false, varargs = false, kwargs = false;
};

// Parses expressions at a cursor, with the precedence of Jinja: from loosest to tightest
//   a if b else c, or, and, not, comparisons and in, + -, ~, * / // %, **, signs,
//   .name [key] (call) |filter, is test.
class ExpressionParser {
 public:
  explicit ExpressionParser(Cursor& cursor) : cursor_(cursor) {}

  Expr expression();                      // with `if … else`
  Expr without_condition();               // leaves an `if` alone
  Expr maybe_tuple(bool with_condition);  // also a, b
  Expr filters_of(Expr first);            // the filters of a block: `upper | trim`
  CallArguments call_arguments();         // after "("
  Expr name();                            // of a variable
  Expr postfix(Expr of);
  Expr make(const Token& first, Expression::Node node, int32_t height_below);
  Mentions& mentions() { return mentions_; }

 private:
  Expr either();
  Expr both();
  Expr negation();
  Expr comparison();
  Expr sum();
  Expr concatenation();
  Expr product();
  Expr power();
  Expr signed_value(bool with_filters);
  Expr primary();
  Expr brackets();
  Expr list();
  Expr dict();
  Expr subscript(Expr of);
  Expr member(Expr of);
  Expr filter(Expr of);
  Expr test(Expr of);
  Expr filters_and_tests(Expr of);
  Expr binary(Operator sign, const Token& first, Expr left, Expr right);

  Cursor& cursor_;
  Mentions mentions_;
};

}  // namespace ingot::jinja
