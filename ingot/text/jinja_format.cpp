#include "ingot/text/jinja_format.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <optional>

#include "ingot/base/error.h"
#include "ingot/text/jinja_budget.h"
#include "ingot/text/jinja_operators.h"
#include "ingot/text/jinja_print.h"
#include "ingot/text/jinja_text.h"
#include "ingot/text/utf8.h"

namespace ingot::jinja {
namespace {

constexpr int64_t widest = 100'000;  // of one place, in characters

// How one value is written: [[fill]align][sign][#][0][width][,][.precision][type].
struct Spec {
  std::string fill = " ";
  char align = '\0';  // <, >, ^ or = (after the sign); by type where absent
  char sign = '-';
  bool alternate = false, grouped = false;
  int64_t width = 0;
  int64_t precision = -1;
  char type = '\0';
};

int64_t digits_at(std::string_view text, size_t& at) {
  int64_t number = 0;
  while (at < text.size() && text[at] >= '0' && text[at] <= '9') {
    number = number * 10 + (text[at++] - '0');
    check(number <= widest, ErrorKind::format, "format: a width or precision beyond ", widest,
          "; choose a smaller one");
  }
  return number;
}

std::string grouped(std::string_view digits) {
  const size_t whole = std::min(digits.find_first_of(".e"), digits.size());
  std::string out;
  for (size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && i < whole && (whole - i) % 3 == 0) {
      out += ',';
    }
    out += digits[i];
  }
  return out;
}

// The magnitude of an integer in the base of the type.
std::string integer_digits(uint64_t magnitude, const Spec& spec) {
  char buffer[80];
  switch (spec.type) {
    case 'x': std::snprintf(buffer, sizeof buffer, "%lx", magnitude); break;
    case 'X': std::snprintf(buffer, sizeof buffer, "%lX", magnitude); break;
    case 'o': std::snprintf(buffer, sizeof buffer, "%lo", magnitude); break;
    default: std::snprintf(buffer, sizeof buffer, "%lu", magnitude); break;
  }
  const std::string prefix = !spec.alternate    ? ""
                             : spec.type == 'o' ? "0o"
                             : spec.type == 'X' ? "0X"
                             : spec.type == 'x' ? "0x"
                                                : "";
  return prefix + buffer;
}

std::string float_digits(double magnitude, const Spec& spec) {
  if (spec.type == '\0' && spec.precision < 0) {
    return float_text(magnitude);
  }
  const bool percent = spec.type == '%';
  const char type = percent ? 'f' : spec.type == '\0' ? 'g' : spec.type;
  const std::string format = std::string(spec.alternate ? "%#.*" : "%.*") + type;
  const int precision =
      spec.precision < 0 ? 6 : static_cast<int>(std::min<int64_t>(spec.precision, 400));
  char buffer[1024];
  std::snprintf(buffer, sizeof buffer, format.c_str(), precision, magnitude * (percent ? 100 : 1));
  std::string out = buffer;
  if (percent) {
    out.push_back('%');
  }
  return out;
}

std::string padded(std::string_view sign, std::string_view body, const Spec& spec,
                   char default_align) {
  const int64_t missing = std::max<int64_t>(spec.width - utf8_length(sign) - utf8_length(body), 0);
  const char align = spec.align == '\0' ? default_align : spec.align;
  const int64_t behind = align == '<' ? missing : align == '^' ? missing - missing / 2 : 0;
  std::string out;
  const auto fill = [&](int64_t count) {
    for (int64_t i = 0; i < count; ++i) {
      out += spec.fill;
    }
  };
  if (align == '=') {
    out += sign;
  }
  fill(missing - behind);
  if (align != '=') {
    out += sign;
  }
  out += body;
  fill(behind);
  return out;
}

bool is_integer_type(char type) {
  return type == 'd' || type == 'x' || type == 'X' || type == 'o' || type == 'n';
}
bool is_float_type(char type) {
  return std::string_view("eEfFgG%").find(type) != std::string_view::npos && type != '\0';
}

// `value` as a number in the form of the spec.
std::string number_text(const Value& value, const Spec& spec) {
  check_defined(value);
  const double* real = value.as<double>();
  const std::optional<int64_t> integer = value.integer();
  check(real != nullptr || integer, ErrorKind::format, "format: %", spec.type,
        " needs a number, not ", type_name(value), "; convert it with the filter `int` or `float`");
  const bool as_integer = integer && !is_float_type(spec.type);
  check(as_integer || !is_integer_type(spec.type), ErrorKind::format, "format: '", spec.type,
        "' needs an integer, not a float; round it with the filter `int`");
  const double number = real != nullptr ? *real : static_cast<double>(*integer);
  const bool negative = as_integer ? *integer < 0 : std::signbit(number);
  std::string digits = as_integer
                           ? integer_digits(negative ? uint64_t{0} - static_cast<uint64_t>(*integer)
                                                     : static_cast<uint64_t>(*integer),
                                            spec)
                           : float_digits(std::abs(number), spec);
  if (spec.grouped) {
    digits = grouped(digits);
  }
  const std::string_view plus(&spec.sign, spec.sign == '-' ? 0 : 1);
  return padded(negative ? "-" : plus, digits, spec, '>');
}

std::string text_in(std::string text, const Spec& spec) {
  if (spec.precision >= 0) {
    text.resize(byte_of(text, spec.precision));
  }
  return padded("", text, spec, '<');
}

// One `%…` of a format, `at` behind the percent sign.
class PercentFormat {
 public:
  PercentFormat(std::string_view format, const Value& values, Budget& budget)
      : format_(format), values_(values), budget_(budget) {}

  std::string run() {
    std::string out;
    while (at_ < format_.size()) {
      const char c = format_[at_++];
      out += c == '%' ? place() : std::string(1, c);
    }
    const Items* items = values_.is<Tuple>() ? values_.list() : nullptr;
    const size_t given = items != nullptr ? items->size() : values_.mapping() != nullptr ? 0 : 1;
    check(used_ >= given || (items == nullptr && values_.list() != nullptr), ErrorKind::format,
          "format: not all arguments converted: the text has places for ", used_, ", given are ",
          given, "; add places or remove arguments");
    budget_.bytes(out.size());
    return out;
  }

 private:
  const Value& next() {
    const Items* items = values_.is<Tuple>() ? values_.list() : nullptr;
    check(items != nullptr ? used_ < items->size() : used_ == 0, ErrorKind::format,
          "format: not enough arguments for the text; give one for each place");
    return items != nullptr ? (*items)[used_++] : (++used_, values_);
  }

  std::string place() {
    const Value* value = nullptr;
    if (at_ < format_.size() && format_[at_] == '(') {
      const size_t end = format_.find(')', at_);
      const Mapping* mapping = values_.mapping();
      check(end != std::string_view::npos && mapping != nullptr, ErrorKind::format,
            "format: %(name) needs a dict of values; give one");
      value = mapping->find(format_.substr(at_ + 1, end - at_ - 1));
      check(value != nullptr, ErrorKind::format, "format: no value named '",
            format_.substr(at_ + 1, end - at_ - 1), "'; give it");
      at_ = end + 1;
    }
    Spec spec;
    spec.align = '>';
    for (; at_ < format_.size() &&
           std::string_view("-+ #0").find(format_[at_]) != std::string_view::npos;
         ++at_) {
      const char flag = format_[at_];
      spec.align = flag == '-' ? '<' : flag == '0' && spec.align != '<' ? '=' : spec.align;
      spec.sign = flag == '+' || (flag == ' ' && spec.sign != '+') ? flag : spec.sign;
      spec.alternate = spec.alternate || flag == '#';
    }
    spec.fill = spec.align == '=' ? "0" : " ";
    spec.width = digits_at(format_, at_);
    if (at_ < format_.size() && format_[at_] == '.') {
      ++at_;
      spec.precision = digits_at(format_, at_);
    }
    check(at_ < format_.size(), ErrorKind::format,
          "format: incomplete; end it with a type, as in %s");
    spec.type = format_[at_++];
    if (spec.type == '%') {
      return "%";
    }
    return written(value != nullptr ? *value : next(), spec);
  }

  std::string written(const Value& value, Spec spec) {
    if (spec.type == 's' || spec.type == 'r' || spec.type == 'a') {
      spec.align = spec.align == '=' ? '>' : spec.align;
      spec.fill.assign(1, ' ');
      return text_in(spec.type == 's' ? printed(value, budget_) : represented(value, budget_),
                     spec);
    }
    if (spec.type == 'c') {
      const bool one = value.text() != nullptr && utf8_length(*value.text()) == 1;
      check(one, ErrorKind::format, "format: %c needs a text of one character; use %s");
      return text_in(*value.text(), spec);
    }
    spec.type = spec.type == 'i' || spec.type == 'u' ? 'd' : spec.type;
    check(is_integer_type(spec.type) || is_float_type(spec.type), ErrorKind::format,
          "format: unsupported format character '", spec.type, "'; use s, r, d, f, e, g, x or o");
    const double* real = value.as<double>();
    const bool whole = spec.type == 'd' && real != nullptr && std::abs(*real) < 0x1p63;
    return number_text(whole ? Value(static_cast<int64_t>(*real)) : value, spec);
  }

  std::string_view format_;
  const Value& values_;
  Budget& budget_;
  size_t at_ = 0;
  size_t used_ = 0;
};

Spec spec_of(std::string_view text) {
  Spec spec;
  size_t at = 0;
  constexpr std::string_view aligns = "<>^=";
  const size_t first = byte_of(text, 1);
  if (first < text.size() && aligns.find(text[first]) != std::string_view::npos) {
    spec.fill = text.substr(0, first);
    spec.align = text[first];
    at = first + 1;
  } else if (!text.empty() && aligns.find(text[0]) != std::string_view::npos) {
    spec.align = text[at++];
  }
  if (at < text.size() && std::string_view("+- ").find(text[at]) != std::string_view::npos) {
    spec.sign = text[at++];
  }
  if (at < text.size() && text[at] == '#') {
    spec.alternate = true;
    ++at;
  }
  if (at < text.size() && text[at] == '0' && spec.align == '\0') {
    spec.fill.assign(1, '0');
    spec.align = '=';
    ++at;
  }
  spec.width = digits_at(text, at);
  if (at < text.size() && text[at] == ',') {
    spec.grouped = true;
    ++at;
  }
  if (at < text.size() && text[at] == '.') {
    ++at;
    spec.precision = digits_at(text, at);
  }
  if (at < text.size()) {
    spec.type = text[at++];
  }
  const bool known = spec.type == '\0' || spec.type == 's' || is_integer_type(spec.type) ||
                     is_float_type(spec.type);
  check(at == text.size() && known, ErrorKind::format, "format: invalid format specifier '", text,
        "'; use such as '>8' or '.2f'");
  return spec;
}

std::string braced(const Value& value, std::string_view conversion, std::string_view spec_text,
                   Budget& budget) {
  const Spec spec = spec_of(spec_text);
  if (!conversion.empty() || spec_text.empty() || value.text() != nullptr) {
    check(spec.type == '\0' || spec.type == 's', ErrorKind::format, "format: '", spec.type,
          "' needs a number, not ", type_name(value), "; convert it first");
    return text_in(conversion == "!r" ? represented(value, budget) : printed(value, budget), spec);
  }
  check(spec.type != 's', ErrorKind::format, "format: 's' needs a text, not ", type_name(value),
        "; leave the type out");
  return number_text(value, spec);
}

}  // namespace

std::string format_percent(std::string_view format, const Value& values, Budget& budget) {
  return PercentFormat(format, values, budget).run();
}

std::string format_braces(std::string_view format, const Arguments& values, Budget& budget) {
  std::string out;
  size_t automatic = 0;
  bool any_automatic = false;
  bool any_numbered = false;
  for (size_t at = 0; at < format.size(); ++at) {
    const char c = format[at];
    if (c != '{' && c != '}') {
      out += c;
      continue;
    }
    if (at + 1 < format.size() && format[at + 1] == c) {
      out += c;
      ++at;
      continue;
    }
    const size_t end = format.find('}', at);
    check(c == '{' && end != std::string_view::npos, ErrorKind::format, "format: single '", c,
          "' in the text; write it twice to print it");
    const std::string_view place = format.substr(at + 1, end - at - 1);
    at = end;
    const size_t colon = std::min(place.find(':'), place.size());
    const size_t mark = std::min(place.find('!'), colon);
    const std::string_view name = place.substr(0, mark);
    size_t digits = 0;
    const int64_t number = digits_at(name, digits);
    const Value* value = nullptr;
    if (digits == name.size()) {
      (name.empty() ? any_automatic : any_numbered) = true;
      check(!any_automatic || !any_numbered, ErrorKind::format,
            "format: {} and {0} in one text; number all places or none");
      const size_t index = name.empty() ? automatic++ : static_cast<size_t>(number);
      value = index < values.positional.size() ? &values.positional[index] : nullptr;
    } else {
      for (const auto& [key, held] : values.named) {
        value = key == name ? &held : value;
      }
    }
    check(value != nullptr, ErrorKind::format, "format: no value for the place {", place,
          "}; give it as an argument");
    out += braced(*value, place.substr(mark, colon - mark),
                  colon < place.size() ? place.substr(colon + 1) : "", budget);
  }
  budget.bytes(out.size());
  return out;
}

Value rounded(const Value& number, int64_t digits) {
  check_defined(number);
  digits = std::clamp<int64_t>(digits, -400, 400);  // beyond, nothing is left or nothing to do
  if (const std::optional<int64_t> integer = number.integer()) {
    if (digits >= 0) {
      return *integer;
    }
    const double scale = std::pow(10.0, static_cast<double>(-digits));
    return scale > 1e19 ? Value(0)
                        : Value(static_cast<int64_t>(
                              std::nearbyint(static_cast<double>(*integer) / scale) * scale));
  }
  const double* real = number.as<double>();
  check(real != nullptr, ErrorKind::format, "round: type ", type_name(number),
        " cannot be rounded; convert it with the filter `float`");
  if (!std::isfinite(*real) || digits > 300) {
    return *real;
  }
  if (digits < 0) {
    const double scale = std::pow(10.0, static_cast<double>(std::min<int64_t>(-digits, 400)));
    return std::isinf(scale) ? Value(0.0) : Value(std::nearbyint(*real / scale) * scale);
  }
  char buffer[800];
  std::snprintf(buffer, sizeof buffer, "%.*f", static_cast<int>(digits), *real);
  return std::strtod(buffer, nullptr);
}

}  // namespace ingot::jinja
