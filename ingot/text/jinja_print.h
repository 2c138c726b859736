#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "ingot/text/jinja_value.h"

namespace ingot::jinja {

class Budget;

// A value as `{{ value }}` prints it: Python's str(). Undefined prints as nothing.
std::string printed(const Value& value, Budget& budget);

// A value as it prints within a list: Python's repr().
std::string represented(const Value& value, Budget& budget);
std::string represented_text(std::string_view text);

// Python's spelling of a float: the shortest decimal that rounds to it; "1.0", "1e+20", "inf".
std::string float_text(double number);

// Python's json.dumps, which the filter `tojson` is in transformers (Jinja's own escapes HTML).
struct JsonStyle {
  bool ensure_ascii = false;
  bool sort_keys = false;
  std::optional<std::string> indent;  // of one level; absent: all in one line
  std::string item_separator = ", ";  // without indent; "," with it unless set
  std::string key_separator = ": ";
};
std::string json_text(const Value& value, const JsonStyle& style, Budget& budget);

}  // namespace ingot::jinja
