#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ingot/text/jinja_value.h"

namespace ingot::jinja {

class Budget;
class Interpreter;

// The arguments of a call, sorted into the parameters of a builtin. Throws Error(format) where they
// do not fit: too many, one twice, one unknown, one missing.
class Bound {
 public:
  // `parameters`: names parted by spaces, those that may be left out with a `?` behind them, such
  // as "old new count?"; "*" takes anything and sorts nothing.
  Bound(std::string_view function, std::string_view parameters, const Arguments& given);

  const Value* get(size_t i) const;  // null where left out
  const Value& value(size_t i) const { return *get(i); }
  // These take none like an argument left out where there is a fallback, and throw Error(format) on
  // other types.
  const std::string& text(size_t i) const;
  std::optional<std::string_view> maybe_text(size_t i) const;
  int64_t integer(size_t i) const;
  int64_t integer_or(size_t i, int64_t fallback) const;
  bool flag_or(size_t i, bool fallback) const;

 private:
  [[noreturn]] void wrong_type(size_t i, std::string_view wanted) const;

  std::string_view function_;
  std::vector<std::string_view> names_;
  std::vector<std::optional<Value>> values_;
};

// A call of a builtin: `self` is what a filter, test or method works on.
struct Invocation {
  Interpreter& machine;
  Budget& budget;
  const Value& self;
  const Bound& given;
  const Arguments& raw;
};

struct Builtin {
  std::string_view name, parameters;
  Value (*run)(const Invocation&);
};

std::span<const Builtin> text_filters();
std::span<const Builtin> item_filters();
std::span<const Builtin> tests();
std::span<const Builtin> globals();  // functions that every template may call
std::span<const Builtin> text_methods();
std::span<const Builtin> list_methods();
std::span<const Builtin> dict_methods();

const Builtin* find_builtin(std::span<const Builtin> table, std::string_view name);
const Builtin* find_filter(std::string_view name);
// Throws Error(format) that names the nearest; `what` is "filter" or "test".
[[noreturn]] void unknown_builtin(std::string_view what, std::string_view name);

}  // namespace ingot::jinja
