#include <algorithm>
#include <array>

#include "ingot/base/edit_distance.h"
#include "ingot/text/jinja_cursor.h"
#include "ingot/text/jinja_tree.h"

namespace ingot::jinja {
namespace {

// Tags that need other files or an extension that transformers does not load.
constexpr std::array<std::string_view, 9> foreign_tags = {
    "include", "import", "from", "extends", "block", "autoescape", "do", "trans", "debug"};

class Parser {
 public:
  explicit Parser(std::string_view source) : cursor_(source), expressions_(cursor_) {}

  Body run() {
    Body body = statements({}, "");
    return body;
  }

 private:
  using Names = std::initializer_list<std::string_view>;

  // Statements up to `{% name` of one of `until`, which stays; `opener` for the message.
  Body statements(Names until, const std::string& opener) {
    const Cursor::Nesting nesting(cursor_);
    const int32_t opened = cursor_.now().line;
    Body body;
    for (;;) {
      const Token first = cursor_.now();
      if (first.kind == TokenKind::end) {
        if (until.size() > 0) {
          cursor_.fail(opened, opener, ": block without end; close it with {% ",
                       std::string_view(*(until.end() - 1)), " %}");
        }
        return body;
      }
      if (first.kind == TokenKind::data) {
        body.push_back(placed(first, Data{cursor_.take().text}));
      } else if (first.kind == TokenKind::variable_begin) {
        body.push_back(output());
      } else {
        const bool ends =
            std::find(until.begin(), until.end(), cursor_.ahead().text) != until.end();
        if (ends && cursor_.ahead().kind == TokenKind::name) {
          cursor_.take();
          return body;
        }
        body.push_back(block());
      }
    }
  }

  Statement placed(const Token& first, Statement::Node node, size_t end = 0) {
    return {std::move(node), first.line, first.begin, end == 0 ? cursor_.last().end : end};
  }

  Statement output() {
    const Token first = cursor_.take();
    Output out;
    out.values.push_back(expressions_.maybe_tuple(true));
    if (!cursor_.is(TokenKind::variable_end)) {
      cursor_.fail(cursor_.now().line, "{{: expected '}}', found ", cursor_.found(),
                   "; mend the spelling there");
    }
    cursor_.take();
    return placed(first, std::move(out));
  }

  Statement block() {
    const Token first = cursor_.take();
    const std::string tag = cursor_.expect_name("{%");
    for (const auto& [name, parse] : tags) {
      if (name == tag) {
        return (this->*parse)(first);
      }
    }
    unknown(first, tag);
  }

  [[noreturn]] void unknown(const Token& first, const std::string& tag) const {
    const std::string shown = "{% " + tag + " %}";
    if (std::find(foreign_tags.begin(), foreign_tags.end(), tag) != foreign_tags.end()) {
      cursor_.fail(
          first.line, shown, ": tag that chat templates do not have; ",
          tag == "do" ? "use {% set %} with a namespace" : "write its content into the template");
    }
    if (tag.starts_with("end") || tag == "else" || tag == "elif") {
      cursor_.fail(first.line, shown, ": ends or divides a block that is not open; remove it");
    }
    std::vector<std::string> known;
    for (const auto& [name, parse] : tags) {
      known.emplace_back(name);
    }
    cursor_.fail(first.line, shown, ": unknown tag; the nearest is ", nearest_word(tag, known));
  }

  void close(std::string_view tag) {
    cursor_.take();  // its name, found by statements()
    cursor_.expect_end(tag);
  }

  Statement if_block(const Token& first) {
    If all;
    Expr condition = expressions_.maybe_tuple(false);
    cursor_.expect_end("{% if %}");
    const size_t end = cursor_.last().end;
    for (;;) {
      Body body = statements({"elif", "else", "endif"}, "{% if %}");
      all.branches.emplace_back(std::move(condition), std::move(body));
      if (!cursor_.skip_name("elif")) {
        break;
      }
      condition = expressions_.maybe_tuple(false);
      cursor_.expect_end("{% elif %}");
    }
    if (cursor_.skip_name("else")) {
      cursor_.expect_end("{% else %}");
      all.otherwise = statements({"endif"}, "{% else %}");
    }
    close("{% endif %}");
    return placed(first, std::move(all), end);
  }

  Statement for_block(const Token& first) {
    For loop;
    loop.target = target("{% for %}");
    if (!cursor_.skip_name("in")) {
      cursor_.fail(cursor_.now().line, "{% for %}: expected 'in', found ", cursor_.found(),
                   "; write {% for item in list %}");
    }
    loop.over = expressions_.maybe_tuple(false);
    if (cursor_.skip_name("if")) {
      loop.condition = expressions_.expression();
    }
    loop.recursive = cursor_.skip_name("recursive");
    cursor_.expect_end("{% for %}");
    const size_t end = cursor_.last().end;
    ++loops_;
    loop.body = statements({"else", "endfor"}, "{% for %}");
    --loops_;
    if (cursor_.skip_name("else")) {
      cursor_.expect_end("{% else %}");
      loop.otherwise = statements({"endfor"}, "{% else %}");
    }
    close("{% endfor %}");
    return placed(first, std::move(loop), end);
  }

  // What an assignment or a loop sets: a, or a, b, with brackets or without.
  Target target(std::string_view where) {
    const Cursor::Nesting nesting(cursor_);
    std::vector<Target> parts;
    bool tuple = false;
    for (;;) {
      if (cursor_.skip_symbol("(")) {
        parts.push_back(target(where));
        cursor_.expect_symbol(")", where);
      } else {
        parts.push_back({checked_name(cursor_.expect_name(where), where)});
      }
      if (!cursor_.skip_symbol(",")) {
        break;
      }
      tuple = true;
      if (!cursor_.is(TokenKind::name) && !cursor_.is_symbol("(")) {
        break;
      }
      if (cursor_.is_name("in")) {
        break;
      }
    }
    return tuple ? Target{std::move(parts)} : std::move(parts.front());
  }

  std::string checked_name(std::string name, std::string_view where) const {
    constexpr std::array<std::string_view, 6> constants = {"true",  "True", "false",
                                                           "False", "none", "None"};
    if (std::find(constants.begin(), constants.end(), name) != constants.end()) {
      cursor_.fail(cursor_.last().line, where, ": ", name, " cannot be set; choose another name");
    }
    return name;
  }

  Statement set_block(const Token& first) {
    const bool member = cursor_.is(TokenKind::name) && cursor_.ahead().kind == TokenKind::symbol &&
                        cursor_.ahead().text == ".";
    Target to;
    if (member) {
      std::string names = cursor_.take().text;
      cursor_.take();
      to.to = NamespaceMember{std::move(names), cursor_.expect_name("{% set %}")};
    } else {
      to = target("{% set %}");
    }
    if (cursor_.skip_symbol("=")) {
      Expr value = expressions_.maybe_tuple(true);
      cursor_.expect_end("{% set %}");
      return placed(first, Set{std::move(to), std::move(value)});
    }
    SetBlock set;
    set.target = std::move(to);
    if (cursor_.skip_symbol("|")) {
      set.filtered = expressions_.filters_of(block_text());
    }
    cursor_.expect_end("{% set %}");
    const size_t end = cursor_.last().end;
    set.body = statements({"endset"}, "{% set %}");
    close("{% endset %}");
    return placed(first, std::move(set), end);
  }

  Expr block_text() { return expressions_.make(cursor_.now(), BlockText(), 0); }

  // The parameters of a macro, after "(".
  void parameters(Function& function, std::string_view where) {
    while (!cursor_.skip_symbol(")")) {
      if (!function.parameters.empty()) {
        cursor_.expect_symbol(",", where);
        if (cursor_.skip_symbol(")")) {
          return;
        }
      }
      const int32_t line = cursor_.now().line;
      std::string name = checked_name(cursor_.expect_name(where), where);
      Expr value = cursor_.skip_symbol("=") ? expressions_.expression() : nullptr;
      if (value == nullptr && !function.parameters.empty() &&
          function.parameters.back().second != nullptr) {
        cursor_.fail(line, where, ": parameter '", name,
                     "' without a default stands behind one "
                     "that has it; give it a default or put it first");
      }
      function.parameters.emplace_back(std::move(name), std::move(value));
    }
  }

  void function_body(Function& function, std::string_view end, const std::string& opener) {
    const Mentions outer = std::exchange(expressions_.mentions(), {});
    const int32_t loops = std::exchange(loops_, 0);
    function.body = statements({end}, opener);
    loops_ = loops;
    Mentions& inner = expressions_.mentions();
    function.uses_caller = inner.caller;
    function.uses_varargs = inner.varargs;
    function.uses_kwargs = inner.kwargs;
    inner = {outer.caller || inner.caller, outer.varargs || inner.varargs,
             outer.kwargs || inner.kwargs};
  }

  Statement macro_block(const Token& first) {
    Macro macro;
    macro.function.name = checked_name(cursor_.expect_name("{% macro %}"), "{% macro %}");
    cursor_.expect_symbol("(", "{% macro %}");
    parameters(macro.function, "{% macro %}");
    cursor_.expect_end("{% macro %}");
    const size_t end = cursor_.last().end;
    function_body(macro.function, "endmacro", "{% macro %}");
    close("{% endmacro %}");
    return placed(first, std::move(macro), end);
  }

  Statement call_block(const Token& first) {
    CallBlock block;
    block.caller.name = "caller";
    if (cursor_.skip_symbol("(")) {
      parameters(block.caller, "{% call %}");
    }
    block.call = expressions_.expression();
    if (!std::holds_alternative<Call>(block.call->node)) {
      cursor_.fail(first.line,
                   "{% call %}: expected the call of a macro; write {% call name(…) %}");
    }
    cursor_.expect_end("{% call %}");
    const size_t end = cursor_.last().end;
    function_body(block.caller, "endcall", "{% call %}");
    close("{% endcall %}");
    return placed(first, std::move(block), end);
  }

  Statement filter_block(const Token& first) {
    FilterBlock block;
    block.filtered = expressions_.filters_of(block_text());
    cursor_.expect_end("{% filter %}");
    const size_t end = cursor_.last().end;
    block.body = statements({"endfilter"}, "{% filter %}");
    close("{% endfilter %}");
    return placed(first, std::move(block), end);
  }

  Statement with_block(const Token& first) {
    With with;
    while (!cursor_.is(TokenKind::block_end)) {
      if (!with.names.empty()) {
        cursor_.expect_symbol(",", "{% with %}");
      }
      Target to{checked_name(cursor_.expect_name("{% with %}"), "{% with %}")};
      cursor_.expect_symbol("=", "{% with %}");
      with.names.emplace_back(std::move(to), expressions_.expression());
    }
    cursor_.expect_end("{% with %}");
    const size_t end = cursor_.last().end;
    with.body = statements({"endwith"}, "{% with %}");
    close("{% endwith %}");
    return placed(first, std::move(with), end);
  }

  Statement generation_block(const Token& first) {
    cursor_.expect_end("{% generation %}");
    const size_t end = cursor_.last().end;
    const int32_t loops = std::exchange(loops_, 0);
    Generation block{statements({"endgeneration"}, "{% generation %}")};
    loops_ = loops;
    close("{% endgeneration %}");
    return placed(first, std::move(block), end);
  }

  Statement print_block(const Token& first) {
    Output out;
    while (!cursor_.is(TokenKind::block_end)) {
      if (!out.values.empty()) {
        cursor_.expect_symbol(",", "{% print %}");
      }
      out.values.push_back(expressions_.expression());
    }
    cursor_.expect_end("{% print %}");
    return placed(first, std::move(out));
  }

  void check_in_loop(const Token& first, std::string_view tag) const {
    if (loops_ == 0) {
      cursor_.fail(first.line, "{% ", tag, " %}: stands in no loop; move it into a {% for %}");
    }
  }
  Statement break_tag(const Token& first) {
    check_in_loop(first, "break");
    cursor_.expect_end("{% break %}");
    return placed(first, Break());
  }
  Statement continue_tag(const Token& first) {
    check_in_loop(first, "continue");
    cursor_.expect_end("{% continue %}");
    return placed(first, Continue());
  }

  using Parse = Statement (Parser::*)(const Token&);
  static constexpr std::array<std::pair<std::string_view, Parse>, 11> tags = {{
      {"if", &Parser::if_block},
      {"for", &Parser::for_block},
      {"set", &Parser::set_block},
      {"macro", &Parser::macro_block},
      {"call", &Parser::call_block},
      {"filter", &Parser::filter_block},
      {"with", &Parser::with_block},
      {"generation", &Parser::generation_block},
      {"print", &Parser::print_block},
      {"break", &Parser::break_tag},
      {"continue", &Parser::continue_tag},
  }};

  Cursor cursor_;
  ExpressionParser expressions_;
  int32_t loops_ = 0;
};

}  // namespace

Tree parse_template(std::string_view source) {
  Tree tree;
  tree.source = normalized_source(source);
  tree.body = Parser(tree.source).run();
  return tree;
}

}  // namespace ingot::jinja
