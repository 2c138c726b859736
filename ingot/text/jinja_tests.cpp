#include <array>

#include "ingot/base/error.h"
#include "ingot/text/jinja_builtin.h"
#include "ingot/text/jinja_interpreter.h"
#include "ingot/text/jinja_operators.h"
#include "ingot/text/jinja_print.h"
#include "ingot/text/jinja_text.h"

namespace ingot::jinja {
namespace {

// What may stand behind `is`.

Value is_defined(const Invocation& in) { return !in.self.is<Undefined>(); }
Value is_undefined(const Invocation& in) { return in.self.is<Undefined>(); }
Value is_none(const Invocation& in) { return in.self.is<None>(); }
Value is_boolean(const Invocation& in) { return in.self.is<bool>(); }
Value is_true(const Invocation& in) { return in.self.is<bool>() && truth(in.self); }
Value is_false(const Invocation& in) { return in.self.is<bool>() && !truth(in.self); }
Value is_integer(const Invocation& in) { return in.self.is<int64_t>(); }
Value is_float(const Invocation& in) { return in.self.is<double>(); }
Value is_number(const Invocation& in) {
  return in.self.integer().has_value() || in.self.is<double>();
}
Value is_string(const Invocation& in) { return in.self.text() != nullptr; }
Value is_mapping(const Invocation& in) { return in.self.mapping() != nullptr; }
Value is_sequence(const Invocation& in) {
  return length(in.self).has_value() && !in.self.is<DictView>();
}
Value is_iterable(const Invocation& in) {
  return length(in.self).has_value() || in.self.is<Stream>();
}
Value is_callable(const Invocation& in) {
  return in.self.object() != nullptr && in.self.object()->call != nullptr;
}
Value is_escaped(const Invocation&) { return false; }
Value is_filter(const Invocation& in) {
  return in.self.text() != nullptr && find_filter(*in.self.text()) != nullptr;
}
Value is_test(const Invocation& in) {
  return in.self.text() != nullptr && find_builtin(tests(), *in.self.text()) != nullptr;
}

Value is_lower(const Invocation& in) { return is_all(Class::lower, printed(in.self, in.budget)); }
Value is_upper(const Invocation& in) { return is_all(Class::upper, printed(in.self, in.budget)); }

bool leaves(const Invocation& in, const Value& divisor, int64_t rest) {
  return equal(modulo(in.self, divisor, in.budget), rest, in.budget);
}
Value is_odd(const Invocation& in) { return leaves(in, 2, 1); }
Value is_even(const Invocation& in) { return leaves(in, 2, 0); }
Value is_divisible(const Invocation& in) { return leaves(in, in.given.value(0), 0); }

Value is_equal(const Invocation& in) { return equal(in.self, in.given.value(0), in.budget); }
Value is_unequal(const Invocation& in) { return !equal(in.self, in.given.value(0), in.budget); }
Value is_less(const Invocation& in) {
  return compare(in.self, in.given.value(0), "<", in.budget) < 0;
}
Value is_less_equal(const Invocation& in) {
  return compare(in.self, in.given.value(0), "<=", in.budget) <= 0;
}
Value is_greater(const Invocation& in) {
  return compare(in.self, in.given.value(0), ">", in.budget) > 0;
}
Value is_greater_equal(const Invocation& in) {
  return compare(in.self, in.given.value(0), ">=", in.budget) >= 0;
}
Value is_in(const Invocation& in) { return contains(in.given.value(0), in.self, in.budget); }

// The same value of the same type; of lists and dicts the same one.
Value is_same(const Invocation& in) {
  const Value& other = in.given.value(0);
  if (in.self.data().index() != other.data().index()) {
    return false;
  }
  if (const List* list = in.self.as<List>()) {
    return list->held == other.as<List>()->held;
  }
  if (const Dict* dict = in.self.as<Dict>()) {
    return dict->held == other.as<Dict>()->held;
  }
  return equal(in.self, other, in.budget);
}

constexpr std::array table = {
    Builtin{"!=", "other", is_unequal},
    Builtin{"<", "other", is_less},
    Builtin{"<=", "other", is_less_equal},
    Builtin{"==", "other", is_equal},
    Builtin{">", "other", is_greater},
    Builtin{">=", "other", is_greater_equal},
    Builtin{"boolean", "", is_boolean},
    Builtin{"callable", "", is_callable},
    Builtin{"defined", "", is_defined},
    Builtin{"divisibleby", "num", is_divisible},
    Builtin{"eq", "other", is_equal},
    Builtin{"equalto", "other", is_equal},
    Builtin{"escaped", "", is_escaped},
    Builtin{"even", "", is_even},
    Builtin{"false", "", is_false},
    Builtin{"filter", "", is_filter},
    Builtin{"float", "", is_float},
    Builtin{"ge", "other", is_greater_equal},
    Builtin{"greaterthan", "other", is_greater},
    Builtin{"gt", "other", is_greater},
    Builtin{"in", "seq", is_in},
    Builtin{"integer", "", is_integer},
    Builtin{"iterable", "", is_iterable},
    Builtin{"le", "other", is_less_equal},
    Builtin{"lessthan", "other", is_less},
    Builtin{"lower", "", is_lower},
    Builtin{"lt", "other", is_less},
    Builtin{"mapping", "", is_mapping},
    Builtin{"ne", "other", is_unequal},
    Builtin{"none", "", is_none},
    Builtin{"number", "", is_number},
    Builtin{"odd", "", is_odd},
    Builtin{"sameas", "other", is_same},
    Builtin{"sequence", "", is_sequence},
    Builtin{"string", "", is_string},
    Builtin{"test", "", is_test},
    Builtin{"true", "", is_true},
    Builtin{"undefined", "", is_undefined},
    Builtin{"upper", "", is_upper},
};

}  // namespace

std::span<const Builtin> tests() { return table; }

}  // namespace ingot::jinja
