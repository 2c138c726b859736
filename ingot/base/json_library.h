#pragma once

#include <nlohmann/json.hpp>
#include <string>

// nlohmann's JSON, of which what is long to compile is compiled once, in json_library.cpp: include
// this in place of <nlohmann/json.hpp>. A file that reads and prints JSON compiles in two thirds of
// the time.
#define INGOT_JSON_TEMPLATES(EXTERN, Json)                                        \
  EXTERN template class nlohmann::detail::serializer<Json>;                       \
  EXTERN template class nlohmann::detail::json_sax_dom_parser<Json>;              \
  EXTERN template class nlohmann::detail::json_sax_dom_callback_parser<Json>;     \
  EXTERN template class nlohmann::detail::lexer<Json, ingot::JsonTextAdapter>;    \
  EXTERN template class nlohmann::detail::parser<Json, ingot::JsonTextAdapter>;   \
  EXTERN template class nlohmann::detail::lexer<Json, ingot::JsonPointerAdapter>; \
  EXTERN template class nlohmann::detail::parser<Json, ingot::JsonPointerAdapter>;

namespace ingot {

using JsonTextAdapter = nlohmann::detail::iterator_input_adapter<std::string::const_iterator>;
using JsonPointerAdapter = nlohmann::detail::iterator_input_adapter<const char*>;

}  // namespace ingot

INGOT_JSON_TEMPLATES(extern, nlohmann::json)
INGOT_JSON_TEMPLATES(extern, nlohmann::ordered_json)
