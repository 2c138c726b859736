#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string_view>

#include "ingot/text/jinja_value.h"

namespace ingot::jinja {

class Budget;

// Python's operators on values. All throw Error(format) where Python raises: operands that do not
// go together, an undefined operand (with the reason why it is undefined), a division by zero, an
// integer beyond 64 bits (Python has no such limit).

void check_defined(const Value& value);  // throws the reason of an Undefined

bool truth(const Value& value);
bool equal(const Value& a, const Value& b, Budget& budget);
// Less, equal or greater; `symbol` names the operator in the error.
std::partial_ordering compare(const Value& a, const Value& b, std::string_view symbol,
                              Budget& budget);
bool contains(const Value& container, const Value& item, Budget& budget);

Value add(const Value& a, const Value& b, Budget& budget);
Value subtract(const Value& a, const Value& b);
Value multiply(const Value& a, const Value& b, Budget& budget);
Value divide(const Value& a, const Value& b);
Value floor_divide(const Value& a, const Value& b);
Value modulo(const Value& a, const Value& b, Budget& budget);  // of a text: printf-like formatting
Value power(const Value& a, const Value& b);
Value negate(const Value& a);
Value plus(const Value& a);

// Python's len(); absent where there is none.
std::optional<int64_t> length(const Value& value);
// What a loop over the value goes through; of a stream, what is left, which is then gone. Absent
// where the value cannot be walked.
std::optional<Items> walked(const Value& value, Budget& budget);
Items items_of(const Value& value, Budget& budget);  // the same, or an Error

// The item at a position or key; absent where there is none.
std::optional<Value> find_item(const Value& value, const Value& key, Budget& budget);
// value[start:stop:step], each absent or none for the default.
Value sliced(const Value& value, const Value& start, const Value& stop, const Value& step,
             Budget& budget);

}  // namespace ingot::jinja
