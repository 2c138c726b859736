#include "ingot/base/json.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "ingot/base/error.h"
#include "ingot/base/files.h"
#include "ingot/base/json_library.h"

namespace ingot {
namespace {

using nlohmann::json;

struct Place {
  int64_t line = 1;
  int64_t column = 1;
};

Place place_of(std::string_view text, size_t byte) {
  Place place;
  for (const char letter : text.substr(0, byte)) {
    place.column = letter == '\n' ? 1 : place.column + 1;
    place.line += letter == '\n' ? 1 : 0;
  }
  return place;
}

// The library's message without its own number and place, which `place_of` states better.
std::string_view reason(std::string_view what) {
  const size_t end_of_place = what.find(": ");
  return end_of_place == std::string_view::npos ? what : what.substr(end_of_place + 2);
}

template <class T>
struct Expected;
template <>
struct Expected<bool> {
  static constexpr std::string_view name = "true or false";
  static bool holds(const json& value) { return value.is_boolean(); }
};
template <>
struct Expected<int64_t> {
  static constexpr std::string_view name = "an integer";
  static bool holds(const json& value) {
    return value.is_number_integer() &&
           !(value.is_number_unsigned() && value.get<uint64_t>() > INT64_MAX);
  }
};
template <>
struct Expected<double> {
  static constexpr std::string_view name = "a number";
  static bool holds(const json& value) { return value.is_number(); }
};
template <>
struct Expected<std::string> {
  static constexpr std::string_view name = "a text";
  static bool holds(const json& value) { return value.is_string(); }
};
template <class T>
struct Expected<std::vector<T>> {
  static constexpr std::string_view name = "a list, each item ";
  static bool holds(const json& value) {
    return value.is_array() && std::all_of(value.begin(), value.end(), Expected<T>::holds);
  }
};

template <class T>
std::string expected_name(const T*) {
  return std::string(Expected<T>::name);
}
template <class T>
std::string expected_name(const std::vector<T>*) {
  return concat(Expected<std::vector<T>>::name, Expected<T>::name);
}

std::string shown(const json& value) {
  const std::string text = value.dump(-1, ' ', false, json::error_handler_t::replace);
  constexpr size_t longest = 60;
  return text.size() <= longest ? text : text.substr(0, longest) + "…";
}

// The member, or null where it is absent or null.
const json* member(const json& object, std::string_view key, const std::string& name) {
  check(object.is_object(), ErrorKind::format, name, ": ", key,
        ": looked up in what is not an object: ", shown(object));
  const auto at = object.find(std::string(key));
  return at == object.end() || at->is_null() ? nullptr : &*at;
}

template <class T>
T converted(const json& value, std::string_view key, const std::string& name) {
  check(Expected<T>::holds(value), ErrorKind::format, name, ": ", key, ": wrong type: expected ",
        expected_name(static_cast<const T*>(nullptr)), ", got ", shown(value));
  return value.get<T>();
}

}  // namespace

json parse_json(std::string_view text, const std::string& name) {
  try {
    return json::parse(text);
  } catch (const json::parse_error& error) {
    const Place place = place_of(text, error.byte > 0 ? error.byte - 1 : 0);
    throw Error(ErrorKind::format, concat(name, ":", place.line, ":", place.column,
                                          ": not valid JSON: ", reason(error.what())));
  } catch (const json::exception& error) {  // a number beyond every type
    throw Error(ErrorKind::format, concat(name, ": not valid JSON: ", error.what()));
  }
}

json parse_json_file(const std::filesystem::path& path) {
  return parse_json(read_file(path), path.string());
}

template <class T>
T json_field(const json& object, std::string_view key, const std::string& name) {
  const json* value = member(object, key, name);
  check(value != nullptr, ErrorKind::format, name, ": ", key, ": missing key: expected ",
        expected_name(static_cast<const T*>(nullptr)));
  return converted<T>(*value, key, name);
}

template <class T>
T json_field_or(const json& object, std::string_view key, T fallback, const std::string& name) {
  const json* value = member(object, key, name);
  return value == nullptr ? fallback : converted<T>(*value, key, name);
}

template bool json_field(const json&, std::string_view, const std::string&);
template int64_t json_field(const json&, std::string_view, const std::string&);
template double json_field(const json&, std::string_view, const std::string&);
template std::string json_field(const json&, std::string_view, const std::string&);
template std::vector<bool> json_field(const json&, std::string_view, const std::string&);
template std::vector<int64_t> json_field(const json&, std::string_view, const std::string&);
template std::vector<double> json_field(const json&, std::string_view, const std::string&);
template std::vector<std::string> json_field(const json&, std::string_view, const std::string&);

template bool json_field_or(const json&, std::string_view, bool, const std::string&);
template int64_t json_field_or(const json&, std::string_view, int64_t, const std::string&);
template double json_field_or(const json&, std::string_view, double, const std::string&);
template std::string json_field_or(const json&, std::string_view, std::string, const std::string&);
template std::vector<bool> json_field_or(const json&, std::string_view, std::vector<bool>,
                                         const std::string&);
template std::vector<int64_t> json_field_or(const json&, std::string_view, std::vector<int64_t>,
                                            const std::string&);
template std::vector<double> json_field_or(const json&, std::string_view, std::vector<double>,
                                           const std::string&);
template std::vector<std::string> json_field_or(const json&, std::string_view,
                                                std::vector<std::string>, const std::string&);

}  // namespace ingot
