#pragma once

#include <string>
#include <string_view>

#include "ingot/text/jinja_value.h"

namespace ingot::jinja {

class Budget;

// Texts with places for values. All throw Error(format) on a place that no value fits.

// Python's `format % values`: "%s is %d". `values` is a tuple, a dict for %(name)s, or one value.
std::string format_percent(std::string_view format, const Value& values, Budget& budget);

// Python's format.format(*positional, **named): "{} {0} {name:>8}"; without members or indices in
// the braces.
std::string format_braces(std::string_view format, const Arguments& values, Budget& budget);

// Python's round(): half to even in decimal; a float stays a float.
Value rounded(const Value& number, int64_t digits);

}  // namespace ingot::jinja
