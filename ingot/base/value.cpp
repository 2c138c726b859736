#include "ingot/base/value.h"

#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>

namespace ingot {
namespace {

std::string number_text(double value) {
  if (std::isnan(value)) {
    return "nan";
  }
  if (std::isinf(value)) {
    return value > 0 ? "inf" : "-inf";
  }
  std::array<char, 32> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value);
  std::string text(digits.data(), end.ptr);
  if (text.find_first_of(".e") == std::string::npos) {
    text += ".0";  // otherwise it would be read back as an integer
  }
  return text;
}

}  // namespace

std::string in_quotes(std::string_view text) {
  std::string out = "\"";
  for (const char letter : text) {
    switch (letter) {
      case '"': out += "\\\""; break;
      case '\\': out += "\\\\"; break;
      case '\n': out += "\\n"; break;
      case '\t': out += "\\t"; break;
      case '\r': out += "\\r"; break;
      default:
        if (static_cast<unsigned char>(letter) < 0x20 || letter == 0x7f) {
          std::array<char, 8> escape{};
          std::snprintf(escape.data(), escape.size(), "\\u%04X", static_cast<unsigned>(letter));
          out += escape.data();
        } else {
          out += letter;
        }
    }
  }
  return out + '"';
}

std::string text_of(const Scalar& value) {
  switch (value.index()) {
    case 0: return std::get<bool>(value) ? "true" : "false";
    case 1: return std::to_string(std::get<int64_t>(value));
    case 2: return number_text(std::get<double>(value));
    default: return in_quotes(std::get<std::string>(value));
  }
}

std::string text_of(const Value& value) {
  if (const auto* list = std::get_if<std::vector<Scalar>>(&value)) {
    std::string out = "[";
    for (const Scalar& item : *list) {
      out += (out.size() > 1 ? ", " : "") + text_of(item);
    }
    return out + "]";
  }
  switch (value.index()) {
    case 0: return text_of(Scalar(std::get<bool>(value)));
    case 1: return text_of(Scalar(std::get<int64_t>(value)));
    case 2: return text_of(Scalar(std::get<double>(value)));
    default: return text_of(Scalar(std::get<std::string>(value)));
  }
}

std::string text_of(const std::optional<Value>& value) {
  return value ? text_of(*value) : "not set";
}

namespace {
constexpr std::array<std::string_view, 5> type_names = {"a boolean", "an integer", "a number",
                                                        "a text", "a list"};
}  // namespace

std::string_view type_of(const Value& value) { return type_names[value.index()]; }
std::string_view type_of(const Scalar& value) { return type_names[value.index()]; }

}  // namespace ingot
