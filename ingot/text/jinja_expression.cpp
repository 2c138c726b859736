#include <algorithm>
#include <array>

#include "ingot/text/jinja_cursor.h"

namespace ingot::jinja {
namespace {

int32_t height(const Expr& e) { return e == nullptr ? 0 : e->height; }
template <class... More>
int32_t height(const Expr& e, const More&... more) {
  return std::max({height(e), height(more)...});
}
int32_t height(const std::vector<Expr>& all) {
  int32_t most = 0;
  for (const Expr& e : all) {
    most = std::max(most, height(e));
  }
  return most;
}
int32_t height(const CallArguments& arguments) {
  int32_t most =
      std::max(height(arguments.positional), height(arguments.rest, arguments.rest_named));
  for (const auto& [name, value] : arguments.named) {
    most = std::max(most, height(value));
  }
  return most;
}

struct Sign {
  std::string_view symbol;
  Operator sign;
};
constexpr std::array sums = {Sign{"+", Operator::add}, Sign{"-", Operator::subtract}};
constexpr std::array products = {Sign{"*", Operator::multiply}, Sign{"/", Operator::divide},
                                 Sign{"//", Operator::floor_divide}, Sign{"%", Operator::modulo}};

struct RelationSign {
  std::string_view symbol;
  Relation relation;
};
constexpr std::array relations = {
    RelationSign{"==", Relation::equal},  RelationSign{"!=", Relation::unequal},
    RelationSign{"<", Relation::less},    RelationSign{"<=", Relation::less_equal},
    RelationSign{">", Relation::greater}, RelationSign{">=", Relation::greater_equal}};

template <class Table>
const typename Table::value_type* sign_at(const Cursor& cursor, const Table& table) {
  const auto at = std::find_if(table.begin(), table.end(),
                               [&](const auto& row) { return cursor.is_symbol(row.symbol); });
  return at == table.end() ? nullptr : &*at;
}

// Where an expression begins: at its own first operand.
Token start_of(const Expr& e) {
  Token token;
  token.line = e->line;
  token.begin = e->begin;
  return token;
}

}  // namespace

Expr ExpressionParser::make(const Token& first, Expression::Node node, int32_t height_below) {
  if (height_below >= tallest_expression) {
    cursor_.fail(first.line, "expression of more than ", tallest_expression,
                 " operators in one another; set parts of it as variables first");
  }
  Expr e = std::make_unique<Expression>();
  e->node = std::move(node);
  e->line = first.line;
  e->height = height_below + 1;
  e->begin = first.begin;
  e->end = std::max(cursor_.last().end, first.begin);
  return e;
}

Expr ExpressionParser::expression() {
  const Cursor::Nesting nesting(cursor_);
  Expr value = either();
  while (cursor_.skip_name("if")) {
    const Token first = start_of(value);
    Expr condition = either();
    Expr otherwise = cursor_.skip_name("else") ? expression() : nullptr;
    const int32_t below = height(value, condition, otherwise);
    value = make(first, Conditional{std::move(condition), std::move(value), std::move(otherwise)},
                 below);
  }
  return value;
}

Expr ExpressionParser::without_condition() {
  const Cursor::Nesting nesting(cursor_);
  return either();
}

Expr ExpressionParser::either() {
  Expr left = both();
  while (cursor_.skip_name("or")) {
    const Token first = start_of(left);
    Expr right = both();
    const int32_t below = height(left, right);
    left = make(first, Logic{false, std::move(left), std::move(right)}, below);
  }
  return left;
}

Expr ExpressionParser::both() {
  Expr left = negation();
  while (cursor_.skip_name("and")) {
    const Token first = start_of(left);
    Expr right = negation();
    const int32_t below = height(left, right);
    left = make(first, Logic{true, std::move(left), std::move(right)}, below);
  }
  return left;
}

Expr ExpressionParser::negation() {
  if (!cursor_.is_name("not")) {
    return comparison();
  }
  const Cursor::Nesting nesting(cursor_);
  const Token first = cursor_.take();
  Expr of = negation();
  const int32_t below = height(of);
  return make(first, Unary{UnaryOperator::not_, std::move(of)}, below);
}

Expr ExpressionParser::comparison() {
  Expr left = sum();
  Comparison all;
  int32_t below = height(left);
  for (;;) {
    Relation relation = Relation::in;
    if (const RelationSign* sign = sign_at(cursor_, relations)) {
      cursor_.take();
      relation = sign->relation;
    } else if (cursor_.is_name("not") && cursor_.ahead().kind == TokenKind::name &&
               cursor_.ahead().text == "in") {
      cursor_.take();
      cursor_.take();
      relation = Relation::not_in;
    } else if (!cursor_.skip_name("in")) {
      break;
    }
    all.rest.emplace_back(relation, sum());
    below = std::max(below, height(all.rest.back().second));
  }
  if (all.rest.empty()) {
    return left;
  }
  const Token first = start_of(left);
  all.first = std::move(left);
  return make(first, std::move(all), below);
}

Expr ExpressionParser::binary(Operator sign, const Token& first, Expr left, Expr right) {
  const int32_t below = height(left, right);
  return make(first, Binary{sign, std::move(left), std::move(right)}, below);
}

Expr ExpressionParser::sum() {
  Expr left = concatenation();
  while (const Sign* sign = sign_at(cursor_, sums)) {
    cursor_.take();
    const Token first = start_of(left);
    left = binary(sign->sign, first, std::move(left), concatenation());
  }
  return left;
}

Expr ExpressionParser::concatenation() {
  Expr left = product();
  while (cursor_.skip_symbol("~")) {
    const Token first = start_of(left);
    left = binary(Operator::concat, first, std::move(left), product());
  }
  return left;
}

Expr ExpressionParser::product() {
  Expr left = power();
  while (const Sign* sign = sign_at(cursor_, products)) {
    cursor_.take();
    const Token first = start_of(left);
    left = binary(sign->sign, first, std::move(left), power());
  }
  return left;
}

Expr ExpressionParser::power() {
  Expr left = signed_value(true);
  while (cursor_.skip_symbol("**")) {
    const Token first = start_of(left);
    left = binary(Operator::power, first, std::move(left), signed_value(true));
  }
  return left;
}

Expr ExpressionParser::signed_value(bool with_filters) {
  Expr value;
  if (cursor_.is_symbol("-") || cursor_.is_symbol("+")) {
    const Cursor::Nesting nesting(cursor_);
    const Token first = cursor_.take();
    Expr of = signed_value(false);
    const int32_t below = height(of);
    value = make(
        first, Unary{first.text == "-" ? UnaryOperator::minus : UnaryOperator::plus, std::move(of)},
        below);
  } else {
    value = primary();
  }
  value = postfix(std::move(value));
  return with_filters ? filters_and_tests(std::move(value)) : std::move(value);
}

Expr ExpressionParser::name() {
  const Token token = cursor_.take();
  mentions_.caller = mentions_.caller || token.text == "caller";
  mentions_.varargs = mentions_.varargs || token.text == "varargs";
  mentions_.kwargs = mentions_.kwargs || token.text == "kwargs";
  return make(token, Name{token.text}, 0);
}

Expr ExpressionParser::primary() {
  const Token& token = cursor_.now();
  if (token.kind == TokenKind::name) {
    const std::string& word = token.text;
    if (word == "true" || word == "True" || word == "false" || word == "False") {
      const Token first = cursor_.take();
      return make(first, Literal{first.text == "true" || first.text == "True"}, 0);
    }
    if (word == "none" || word == "None") {
      return make(cursor_.take(), Literal{}, 0);
    }
    return name();
  }
  if (token.kind == TokenKind::text) {
    const Token first = cursor_.take();
    std::string text = first.text;
    while (cursor_.is(TokenKind::text)) {
      text += cursor_.take().text;
    }
    return make(first, Literal{Value(std::move(text))}, 0);
  }
  if (token.kind == TokenKind::integer) {
    const Token first = cursor_.take();
    return make(first, Literal{Value(first.integer)}, 0);
  }
  if (token.kind == TokenKind::real) {
    const Token first = cursor_.take();
    return make(first, Literal{Value(first.real)}, 0);
  }
  if (cursor_.is_symbol("(")) {
    return brackets();
  }
  if (cursor_.is_symbol("[")) {
    return list();
  }
  if (cursor_.is_symbol("{")) {
    return dict();
  }
  cursor_.fail(token.line, "expected an expression, found ", cursor_.found(),
               "; mend the spelling there");
}

// What stands between brackets; the tree keeps no trace of them but for a tuple.
Expr ExpressionParser::brackets() {
  const Token first = cursor_.take();
  if (cursor_.skip_symbol(")")) {
    return make(first, ListDisplay{{}, true}, 0);
  }
  Expr inside = maybe_tuple(true);
  cursor_.expect_symbol(")", "(…)");
  inside->begin = first.begin;
  inside->end = cursor_.last().end;
  return inside;
}

Expr ExpressionParser::maybe_tuple(bool with_condition) {
  const auto one = [&] { return with_condition ? expression() : without_condition(); };
  const Token first = cursor_.now();
  Expr value = one();
  if (!cursor_.is_symbol(",")) {
    return value;
  }
  ListDisplay display{{}, true};
  display.items.push_back(std::move(value));
  while (cursor_.skip_symbol(",")) {
    const bool ends = cursor_.is(TokenKind::variable_end) || cursor_.is(TokenKind::block_end) ||
                      cursor_.is_symbol(")");
    if (ends) {
      break;
    }
    display.items.push_back(one());
  }
  const int32_t below = height(display.items);
  return make(first, std::move(display), below);
}

Expr ExpressionParser::list() {
  const Token first = cursor_.take();
  ListDisplay display;
  while (!cursor_.skip_symbol("]")) {
    if (!display.items.empty()) {
      cursor_.expect_symbol(",", "[…]");
      if (cursor_.skip_symbol("]")) {
        break;
      }
    }
    display.items.push_back(expression());
  }
  const int32_t below = height(display.items);
  return make(first, std::move(display), below);
}

Expr ExpressionParser::dict() {
  const Token first = cursor_.take();
  DictDisplay display;
  int32_t below = 0;
  while (!cursor_.skip_symbol("}")) {
    if (!display.items.empty()) {
      cursor_.expect_symbol(",", "{…}");
      if (cursor_.skip_symbol("}")) {
        break;
      }
    }
    Expr key = expression();
    cursor_.expect_symbol(":", "{…}");
    Expr value = expression();
    below = std::max(below, height(key, value));
    display.items.emplace_back(std::move(key), std::move(value));
  }
  return make(first, std::move(display), below);
}

Expr ExpressionParser::postfix(Expr of) {
  for (;;) {
    if (cursor_.is_symbol(".")) {
      of = member(std::move(of));
    } else if (cursor_.is_symbol("[")) {
      of = subscript(std::move(of));
    } else if (cursor_.is_symbol("(")) {
      const Token first = start_of(of);
      cursor_.take();
      CallArguments arguments = call_arguments();
      const int32_t below = std::max(height(of), height(arguments));
      of = make(first, Call{std::move(of), std::move(arguments)}, below);
    } else {
      return of;
    }
  }
}

Expr ExpressionParser::member(Expr of) {
  const Token first = start_of(of);
  cursor_.take();
  const int32_t below = height(of);
  if (cursor_.is(TokenKind::integer)) {  // items.0
    const Token place = cursor_.take();
    Expr key = make(place, Literal{Value(place.integer)}, 0);
    return make(first, Subscript{std::move(of), std::move(key)}, std::max(below, 1));
  }
  std::string name = cursor_.expect_name("'.'");
  return make(first, Attribute{std::move(of), std::move(name)}, below);
}

Expr ExpressionParser::subscript(Expr of) {
  const Cursor::Nesting nesting(cursor_);
  const Token first = start_of(of);
  const Token open = cursor_.take();
  std::array<Expr, 3> parts;
  size_t at = 0;
  bool slice = false;
  ListDisplay keys{{}, true};
  for (;;) {
    if (at < 2 && cursor_.skip_symbol(":")) {
      slice = true;
      ++at;
    } else if (cursor_.skip_symbol("]")) {
      break;
    } else if (parts[at] == nullptr && !(slice && !keys.items.empty())) {
      parts[at] = expression();
    } else if (!slice && cursor_.skip_symbol(",")) {
      keys.items.push_back(std::move(parts[0]));
      if (cursor_.is_symbol("]")) {
        parts[0] = nullptr;
      }
    } else {
      cursor_.expect_symbol("]", "[…]");
    }
  }
  if (slice) {
    const int32_t below = std::max(height(of), height(parts[0], parts[1], parts[2]));
    return make(first,
                Slice{std::move(of), std::move(parts[0]), std::move(parts[1]), std::move(parts[2])},
                below);
  }
  if (!keys.items.empty()) {  // a[1, 2] has the key (1, 2)
    if (parts[0] != nullptr) {
      keys.items.push_back(std::move(parts[0]));
    }
    const int32_t below = height(keys.items);
    parts[0] = make(open, std::move(keys), below);
  }
  if (parts[0] == nullptr) {
    cursor_.fail(open.line, "[]: expected a key or a slice between the brackets; write one");
  }
  const int32_t below = height(of, parts[0]);
  return make(first, Subscript{std::move(of), std::move(parts[0])}, below);
}

CallArguments ExpressionParser::call_arguments() {
  const Cursor::Nesting nesting(cursor_);
  CallArguments arguments;
  bool any = false;
  while (!cursor_.skip_symbol(")")) {
    if (any) {
      cursor_.expect_symbol(",", "(…)");
      if (cursor_.skip_symbol(")")) {
        break;
      }
    }
    any = true;
    const bool named = cursor_.is(TokenKind::name) && cursor_.ahead().kind == TokenKind::symbol &&
                       cursor_.ahead().text == "=";
    if (cursor_.skip_symbol("**")) {
      arguments.rest_named = expression();
    } else if (cursor_.skip_symbol("*")) {
      arguments.rest = expression();
    } else if (named) {
      std::string name = cursor_.take().text;
      cursor_.take();
      arguments.named.emplace_back(std::move(name), expression());
    } else {
      if (!arguments.named.empty() || arguments.rest_named != nullptr) {
        cursor_.fail(cursor_.now().line, "(…): a plain argument stands behind a named one, at ",
                     cursor_.found(), "; put it before");
      }
      arguments.positional.push_back(expression());
    }
  }
  return arguments;
}

Expr ExpressionParser::filter(Expr of) {
  const Token first =
      of != nullptr && !std::holds_alternative<BlockText>(of->node) ? start_of(of) : cursor_.now();
  std::string name = cursor_.expect_name("'|'");
  while (cursor_.skip_symbol(".")) {
    name += '.';
    name += cursor_.expect_name("'|'");
  }
  CallArguments arguments = cursor_.skip_symbol("(") ? call_arguments() : CallArguments();
  const int32_t below = std::max(height(of), height(arguments));
  return make(first, Filtered{std::move(of), std::move(name), std::move(arguments)}, below);
}

Expr ExpressionParser::filters_of(Expr first) {
  Expr value = filter(std::move(first));
  while (cursor_.skip_symbol("|")) {
    value = filter(std::move(value));
  }
  return value;
}

Expr ExpressionParser::test(Expr of) {
  const Token first = start_of(of);
  const bool negated = cursor_.skip_name("not");
  std::string name = cursor_.expect_name("'is'");
  CallArguments arguments;
  const Token& next = cursor_.now();
  const bool ends = next.kind == TokenKind::name &&
                    (next.text == "else" || next.text == "or" || next.text == "and");
  const bool operand = next.kind == TokenKind::name || next.kind == TokenKind::text ||
                       next.kind == TokenKind::integer || next.kind == TokenKind::real ||
                       cursor_.is_symbol("[") || cursor_.is_symbol("{");
  if (cursor_.skip_symbol("(")) {
    arguments = call_arguments();
  } else if (operand && !ends) {
    if (cursor_.is_name("is")) {
      cursor_.fail(next.line, "is ", name,
                   " is: tests cannot follow one another; join them by `and`");
    }
    const Cursor::Nesting nesting(cursor_);
    arguments.positional.push_back(postfix(primary()));
  }
  const int32_t below = std::max(height(of), height(arguments));
  Expr value = make(first, Tested{std::move(of), std::move(name), std::move(arguments)}, below);
  return negated ? make(first, Unary{UnaryOperator::not_, std::move(value)}, below + 1)
                 : std::move(value);
}

Expr ExpressionParser::filters_and_tests(Expr of) {
  for (;;) {
    if (cursor_.skip_symbol("|")) {
      of = filter(std::move(of));
    } else if (cursor_.skip_name("is")) {
      of = test(std::move(of));
    } else if (cursor_.is_symbol("(")) {
      of = postfix(std::move(of));
    } else {
      return of;
    }
  }
}

}  // namespace ingot::jinja
