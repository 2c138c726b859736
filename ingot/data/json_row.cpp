#include <simdjson.h>

#include <stdexcept>

#include "ingot/data/row_reader.h"
#include "ingot/text/jinja_json.h"
#include "ingot/text/utf8.h"

namespace ingot {
namespace {

using jinja::Value;
using simdjson::dom::element;
using simdjson::dom::element_type;

// Throws std::out_of_range for an integer beyond 64 bits with sign.
Value value_of(const element& json) {
  switch (json.type()) {
    case element_type::OBJECT: {
      jinja::Mapping out;
      const simdjson::dom::object object = json.get_object().value_unsafe();
      for (const auto field : object) {
        out.set(Value(std::string_view(field.key)), value_of(field.value));
      }
      return dict_of(std::move(out));
    }
    case element_type::ARRAY: {
      jinja::Items out;
      const simdjson::dom::array array = json.get_array().value_unsafe();
      for (const element item : array) {
        out.push_back(value_of(item));
      }
      return list_of(std::move(out));
    }
    case element_type::STRING: return Value(json.get_string().value_unsafe());
    case element_type::INT64: return Value(json.get_int64().value_unsafe());
    case element_type::UINT64: throw std::out_of_range("integer");
    case element_type::DOUBLE: return Value(json.get_double().value_unsafe());
    case element_type::BOOL: return Value(json.get_bool().value_unsafe());
    case element_type::NULL_VALUE: return Value();
  }
  return Value();
}

// The message of the slower parser, which says where; `line` of a JSONL row stands in `name`.
[[noreturn]] void explain(std::string_view text, const std::string& name) {
  check_row(is_valid_utf8(text), RowFault::utf8, name, ": not valid UTF-8 at byte ",
            valid_utf8_prefix(text) + 1, " of the row; save the file as UTF-8");
  try {
    jinja::parse_json_value(text, name);
  } catch (const Error& error) {
    const size_t comma = text.find_last_not_of(" \t\r\n}]");
    const bool trailing = comma != std::string_view::npos && text[comma] == ',';
    throw RowError(RowFault::json,
                   concat(error.what(), trailing ? "; remove the comma before the bracket" : ""));
  }
  throw RowError(RowFault::json, concat(name, ": not valid JSON"));
}

}  // namespace

Value json_row(std::string_view text, const std::string& name) {
  thread_local simdjson::dom::parser parser;
  element root;
  const auto failure = parser.parse(text.data(), text.size(), true).get(root);
  if (failure != simdjson::SUCCESS) {
    explain(text, name);
  }
  try {
    return value_of(root);
  } catch (const std::out_of_range&) {
    explain(text, name);
  } catch (const Error& error) {  // lists in lists beyond what values may be
    throw RowError(RowFault::json, concat(name, ": ", error.what()));
  }
}

}  // namespace ingot
