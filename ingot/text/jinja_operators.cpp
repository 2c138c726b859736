#include "ingot/text/jinja_operators.h"

#include <algorithm>
#include <cmath>

#include "ingot/base/error.h"
#include "ingot/text/jinja_budget.h"
#include "ingot/text/jinja_format.h"
#include "ingot/text/jinja_text.h"

namespace ingot::jinja {
namespace {

std::optional<double> number_of(const Value& value) {
  if (const double* number = value.as<double>()) {
    return *number;
  }
  const std::optional<int64_t> integer = value.integer();
  return integer ? std::optional(static_cast<double>(*integer)) : std::nullopt;
}

[[noreturn]] void refuse(std::string_view symbol, const Value& a, const Value& b) {
  check_defined(a);
  check_defined(b);
  const bool texts = symbol == "+" && (a.text() != nullptr || b.text() != nullptr);
  throw Error(
      ErrorKind::format,
      concat("unsupported operand types for ", symbol, ": '", type_name(a), "' and '", type_name(b),
             "'; ", texts ? "join texts with other values by ~" : "convert one of them first"));
}

[[noreturn]] void too_large(std::string_view symbol) {
  throw Error(ErrorKind::format, concat("integer beyond 64 bits as the result of ", symbol,
                                        "; use a float, such as 1.0"));
}

// An operation of numbers: on integers where both are, else on doubles.
template <class Integers, class Doubles>
Value arithmetic(std::string_view symbol, const Value& a, const Value& b, Integers integers,
                 Doubles doubles) {
  const std::optional<int64_t> left = a.integer();
  const std::optional<int64_t> right = b.integer();
  if (left && right) {
    return integers(*left, *right);
  }
  const std::optional<double> x = number_of(a);
  const std::optional<double> y = number_of(b);
  if (!x || !y) {
    refuse(symbol, a, b);
  }
  return doubles(*x, *y);
}

void check_divisor(bool nonzero) {
  check(nonzero, ErrorKind::format, "division by zero; test the divisor first");
}

Value joined(const Items& a, const Items& b, bool as_tuple, Budget& budget) {
  budget.items(a.size() + b.size());
  Items all = a;
  all.insert(all.end(), b.begin(), b.end());
  return as_tuple ? tuple_of(std::move(all)) : list_of(std::move(all));
}

// The size of `count` copies, charged; 0 for a negative count.
size_t copies(int64_t count, size_t size, size_t unit, Budget& budget) {
  if (count <= 0 || size == 0) {
    return 0;
  }
  int64_t bytes = 0;
  const bool over = __builtin_mul_overflow(count, static_cast<int64_t>(size * unit), &bytes);
  budget.bytes(over ? INT64_MAX : bytes);
  return static_cast<size_t>(count);
}

std::optional<Value> repeated(const Value& what, int64_t count, Budget& budget) {
  if (const std::string* text = what.text()) {
    const size_t times = copies(count, text->size(), 1, budget);
    std::string out;
    out.reserve(times * text->size());
    for (size_t i = 0; i < times; ++i) {
      out += *text;
    }
    return Value(std::move(out));
  }
  const Items* items = what.list();
  if (items == nullptr) {
    return std::nullopt;
  }
  const size_t times = copies(count, items->size(), 24, budget);
  Items out;
  for (size_t i = 0; i < times; ++i) {
    out.insert(out.end(), items->begin(), items->end());
  }
  return what.is<Tuple>() ? tuple_of(std::move(out)) : list_of(std::move(out));
}

bool equal_items(const Items& a, const Items& b, Budget& budget) {
  return a.size() == b.size() &&
         std::equal(a.begin(), a.end(), b.begin(),
                    [&budget](const Value& x, const Value& y) { return equal(x, y, budget); });
}

bool equal_mappings(const Mapping& a, const Mapping& b, Budget& budget) {
  if (a.items().size() != b.items().size()) {
    return false;
  }
  return std::all_of(a.items().begin(), a.items().end(), [&](const auto& member) {
    const Value* other = b.find_key(member.first);
    return other != nullptr && equal(member.second, *other, budget);
  });
}

bool same_object(const Value& a, const Value& b) {
  if (const auto* one = a.as<std::shared_ptr<const Object>>()) {
    const auto* other = b.as<std::shared_ptr<const Object>>();
    return other != nullptr && *one == *other;
  }
  if (const auto* one = a.as<Namespace*>()) {
    const auto* other = b.as<Namespace*>();
    return other != nullptr && *one == *other;
  }
  const Stream* one = a.as<Stream>();
  const Stream* other = b.as<Stream>();
  return one != nullptr && other != nullptr && one->state == other->state;
}

}  // namespace

void check_defined(const Value& value) {
  if (const Undefined* undefined = value.as<Undefined>()) {
    throw Error(ErrorKind::format, *undefined->why);
  }
}

bool truth(const Value& value) {
  if (const double* number = value.as<double>()) {
    return *number != 0;
  }
  if (const std::optional<int64_t> integer = value.integer()) {
    return *integer != 0;
  }
  if (const std::string* text = value.text()) {
    return !text->empty();
  }
  if (value.is<None>() || value.is<Undefined>()) {
    return false;
  }
  return length(value).value_or(1) != 0;
}

bool equal(const Value& a, const Value& b, Budget& budget) {
  budget.step();
  if (const std::string* text = a.text()) {
    budget.bytes(text->size() / 64);  // not made, but read
    return b.text() != nullptr && *text == *b.text();
  }
  const std::optional<double> x = number_of(a);
  const std::optional<double> y = number_of(b);
  if (x && y) {
    return a.integer() && b.integer() ? *a.integer() == *b.integer() : *x == *y;
  }
  if (a.list() != nullptr && b.list() != nullptr) {
    return a.is<List>() == b.is<List>() && equal_items(*a.list(), *b.list(), budget);
  }
  if (a.mapping() != nullptr && b.mapping() != nullptr) {
    return equal_mappings(*a.mapping(), *b.mapping(), budget);
  }
  if (a.is<Range>() && b.is<Range>()) {
    return equal_items(items_of(a, budget), items_of(b, budget), budget);
  }
  if ((a.is<None>() && b.is<None>()) || (a.is<Undefined>() && b.is<Undefined>())) {
    return true;
  }
  return same_object(a, b);
}

std::partial_ordering compare(const Value& a, const Value& b, std::string_view symbol,
                              Budget& budget) {
  budget.step();
  const std::optional<double> x = number_of(a);
  const std::optional<double> y = number_of(b);
  if (x && y) {
    return a.integer() && b.integer() ? *a.integer() <=> *b.integer() : *x <=> *y;
  }
  if (a.text() != nullptr && b.text() != nullptr) {
    budget.bytes(a.text()->size() / 64);
    return *a.text() <=> *b.text();  // the order of UTF-8 is that of code points
  }
  if (a.list() != nullptr && b.list() != nullptr && a.is<List>() == b.is<List>()) {
    const size_t shared = std::min(a.list()->size(), b.list()->size());
    for (size_t i = 0; i < shared; ++i) {
      if (!equal((*a.list())[i], (*b.list())[i], budget)) {
        return compare((*a.list())[i], (*b.list())[i], symbol, budget);
      }
    }
    return a.list()->size() <=> b.list()->size();
  }
  check_defined(a);
  check_defined(b);
  throw Error(ErrorKind::format,
              concat("'", symbol, "' not supported between instances of '", type_name(a), "' and '",
                     type_name(b), "'; compare values of one type"));
}

bool contains(const Value& container, const Value& item, Budget& budget) {
  if (const std::string* text = container.text()) {
    check_defined(item);
    check(item.text() != nullptr, ErrorKind::format,
          "'in <string>' requires string as left operand, not ", type_name(item),
          "; make it a text with the filter `string`");
    budget.bytes(text->size() / 64);
    return text->find(*item.text()) != std::string::npos;
  }
  if (const Mapping* mapping = container.mapping()) {
    return mapping->find_key(item) != nullptr;
  }
  if (const auto* names = container.as<Namespace*>(); names != nullptr) {
    throw Error(ErrorKind::format, "argument of type 'Namespace' is not iterable; name the member");
  }
  const std::optional<Items> items = walked(container, budget);
  check(items, ErrorKind::format, "argument of type '", type_name(container),
        "' is not iterable; `in` needs a text, list or dict on its right");
  return std::any_of(items->begin(), items->end(),
                     [&](const Value& one) { return equal(one, item, budget); });
}

Value add(const Value& a, const Value& b, Budget& budget) {
  if (a.text() != nullptr && b.text() != nullptr) {
    budget.bytes(a.text()->size() + b.text()->size());
    return *a.text() + *b.text();
  }
  if (a.list() != nullptr && b.list() != nullptr && a.is<List>() == b.is<List>()) {
    return joined(*a.list(), *b.list(), a.is<Tuple>(), budget);
  }
  return arithmetic(
      "+", a, b,
      [](int64_t x, int64_t y) -> Value {
        int64_t sum = 0;
        return __builtin_add_overflow(x, y, &sum) ? (too_large("+"), Value()) : Value(sum);
      },
      [](double x, double y) -> Value { return x + y; });
}

Value subtract(const Value& a, const Value& b) {
  return arithmetic(
      "-", a, b,
      [](int64_t x, int64_t y) -> Value {
        int64_t difference = 0;
        return __builtin_sub_overflow(x, y, &difference) ? (too_large("-"), Value())
                                                         : Value(difference);
      },
      [](double x, double y) -> Value { return x - y; });
}

Value multiply(const Value& a, const Value& b, Budget& budget) {
  for (const auto& [what, count] : {std::pair(&a, &b), std::pair(&b, &a)}) {
    if (const std::optional<int64_t> times = count->integer()) {
      if (std::optional<Value> out = repeated(*what, *times, budget)) {
        return *std::move(out);
      }
    }
  }
  return arithmetic(
      "*", a, b,
      [](int64_t x, int64_t y) -> Value {
        int64_t product = 0;
        return __builtin_mul_overflow(x, y, &product) ? (too_large("*"), Value()) : Value(product);
      },
      [](double x, double y) -> Value { return x * y; });
}

Value divide(const Value& a, const Value& b) {
  const auto quotient = [](auto x, auto y) -> Value {
    check_divisor(y != 0);
    return static_cast<double>(x) / static_cast<double>(y);
  };
  return arithmetic("/", a, b, quotient, quotient);
}

Value floor_divide(const Value& a, const Value& b) {
  return arithmetic(
      "//", a, b,
      [](int64_t x, int64_t y) -> Value {
        check_divisor(y != 0);
        if (x == INT64_MIN && y == -1) {
          too_large("//");
        }
        return x / y - (x % y != 0 && (x < 0) != (y < 0) ? 1 : 0);
      },
      [](double x, double y) -> Value {
        check_divisor(y != 0);
        return std::floor(x / y);
      });
}

Value modulo(const Value& a, const Value& b, Budget& budget) {
  if (const std::string* format = a.text()) {
    return format_percent(*format, b, budget);
  }
  return arithmetic(
      "%", a, b,
      [](int64_t x, int64_t y) -> Value {
        check_divisor(y != 0);
        const int64_t rest = y == -1 ? 0 : x % y;
        return rest != 0 && (rest < 0) != (y < 0) ? rest + y : rest;
      },
      [](double x, double y) -> Value {
        check_divisor(y != 0);
        const double rest = std::fmod(x, y);
        return rest != 0 && (rest < 0) != (y < 0) ? rest + y : rest;
      });
}

Value power(const Value& a, const Value& b) {
  return arithmetic(
      "**", a, b,
      [](int64_t x, int64_t y) -> Value {
        if (y < 0) {
          check_divisor(x != 0);
          return std::pow(static_cast<double>(x), static_cast<double>(y));
        }
        int64_t result = 1;
        for (int64_t square = x; y > 0; y /= 2) {
          if (y % 2 == 1 && __builtin_mul_overflow(result, square, &result)) {
            too_large("**");
          }
          if (y > 1 && __builtin_mul_overflow(square, square, &square)) {
            too_large("**");
          }
        }
        return result;
      },
      [](double x, double y) -> Value { return std::pow(x, y); });
}

Value negate(const Value& a) {
  check_defined(a);
  if (const double* number = a.as<double>()) {
    return -*number;
  }
  const std::optional<int64_t> integer = a.integer();
  check(integer, ErrorKind::format, "bad operand type for unary -: '", type_name(a),
        "'; it takes a number");
  return *integer == INT64_MIN ? (too_large("-"), Value()) : Value(-*integer);
}

Value plus(const Value& a) {
  check_defined(a);
  if (a.is<double>()) {
    return a;
  }
  const std::optional<int64_t> integer = a.integer();
  check(integer, ErrorKind::format, "bad operand type for unary +: '", type_name(a),
        "'; it takes a number");
  return *integer;
}

}  // namespace ingot::jinja
