#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "ingot/base/error.h"
#include "ingot/text/jinja_budget.h"
#include "ingot/text/jinja_builtin.h"
#include "ingot/text/jinja_format.h"
#include "ingot/text/jinja_operators.h"
#include "ingot/text/jinja_print.h"
#include "ingot/text/jinja_text.h"
#include "ingot/text/utf8.h"

namespace ingot::jinja {
namespace {

// Filters that make texts and numbers of one value.

std::string soft(const Invocation& in) { return printed(in.self, in.budget); }

template <std::string (*convert)(std::string_view)>
Value converted(const Invocation& in) {
  return convert(soft(in));
}

// Each word of the title filter starts behind white space, a hyphen or an opening bracket.
Value titled(const Invocation& in) {
  const std::string text = soft(in);
  std::string out;
  bool first = true;
  std::string word;
  for (size_t at = 0; at < text.size();) {
    const size_t start = at;
    const char32_t c = next_character(text, at);
    const std::string_view one = std::string_view(text).substr(start, at - start);
    if (is_space(c) || std::string_view("-({[<").find(one) != std::string_view::npos) {
      out += lower(word) + std::string(one);
      word.clear();
      first = true;
    } else if (first) {
      out += upper(one);
      first = false;
    } else {
      word += one;
    }
  }
  return out + lower(word);
}

Value trim(const Invocation& in) {
  const std::string text = soft(in);
  return stripped(text, Side::both, in.given.maybe_text(0));
}

Value replace(const Invocation& in) {
  return replaced(soft(in), printed(in.given.value(0), in.budget),
                  printed(in.given.value(1), in.budget), in.given.integer_or(2, -1), in.budget);
}

Value indent(const Invocation& in) {
  check_defined(in.self);
  check(in.self.text() != nullptr, ErrorKind::format, "indent: needs a text, not ",
        type_name(in.self), "; make it one with the filter `string` or `tojson`");
  const Value* width = in.given.get(0);
  std::string space;
  if (width != nullptr && width->text() != nullptr) {
    space = *width->text();
  } else {
    space = justified("", in.given.integer_or(0, 4), " ", '<', in.budget);
  }
  const bool first = in.given.flag_or(1, false);
  const bool blank = in.given.flag_or(2, false);
  const std::string text = *in.self.text() + "\n";
  std::string out = first ? space : "";
  bool start = true;
  for (const std::string_view line : lines_of(text, false)) {
    in.budget.bytes(space.size() + line.size() + 1);
    if (!start) {
      out += "\n";
      out += blank || !line.empty() ? space : "";
    }
    out += line;
    start = false;
  }
  return out;
}

Value truncate(const Invocation& in) {
  const int64_t size = in.given.integer_or(0, 255);
  const bool within_words = in.given.flag_or(1, false);
  const std::string end(in.given.maybe_text(2).value_or("..."));
  const int64_t leeway = in.given.integer_or(3, 5);
  if (in.self.is<Undefined>()) {
    return in.self;
  }
  const std::string text = soft(in);
  const int64_t kept = size - utf8_length(end);
  check(kept >= 0 && leeway >= 0, ErrorKind::format, "truncate: length ", size, " and leeway ",
        leeway, " cannot hold the end '", end, "'; raise them");
  if (utf8_length(text) - leeway <= size) {
    return text;
  }
  const std::string_view start = std::string_view(text).substr(0, byte_of(text, kept));
  return std::string(within_words ? start : split_from_right(start, " ", 1).front()) + end;
}

Value center(const Invocation& in) {
  return justified(soft(in), in.given.integer_or(0, 80), " ", '^', in.budget);
}

Value escape(const Invocation& in) {
  std::string out;
  for (const char c : soft(in)) {
    switch (c) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '"': out += "&#34;"; break;
      case '\'': out += "&#39;"; break;
      default: out += c;
    }
  }
  in.budget.bytes(out.size());
  return out;
}

Value string(const Invocation& in) { return soft(in); }

Value word_count(const Invocation& in) {
  int64_t count = 0;
  bool within = false;
  for (const std::string& one : characters_of(soft(in))) {
    const bool letter = one == "_" || is_all(Class::alnum, one);
    count += letter && !within ? 1 : 0;
    within = letter;
  }
  return count;
}

Value format(const Invocation& in) {
  check(in.raw.positional.empty() || in.raw.named.empty(), ErrorKind::format,
        "format: positional and keyword arguments at the same time; use one kind");
  if (in.raw.named.empty()) {
    return format_percent(soft(in), tuple_of(in.raw.positional), in.budget);
  }
  Mapping named;
  for (const auto& [name, value] : in.raw.named) {
    named.set(name, value);
  }
  return format_percent(soft(in), dict_of(std::move(named)), in.budget);
}

Value url_encode(const Invocation& in) {
  constexpr std::string_view kept = "-._~/";
  constexpr std::string_view hex = "0123456789ABCDEF";
  check(in.self.list() == nullptr && in.self.mapping() == nullptr, ErrorKind::format,
        "urlencode: takes a text; encode the parts of a list one by one");
  std::string out;
  for (const char c : soft(in)) {
    const auto byte = static_cast<uint8_t>(c);
    const bool letter = byte < 128 && std::isalnum(byte);
    if (letter || kept.find(c) != std::string_view::npos) {
      out += c;
    } else {
      out += {'%', hex[byte >> 4], hex[byte & 15]};
    }
  }
  in.budget.bytes(out.size());
  return out;
}

// Numbers.

std::optional<double> parsed_float(std::string_view text) {
  std::string digits(stripped(text));
  std::erase(digits, '_');
  const bool hex = digits.find_first_of("xXpP(") != std::string::npos;
  char* end = nullptr;
  const double number = std::strtod(digits.c_str(), &end);
  const bool whole = !digits.empty() && end == digits.c_str() + digits.size();
  return whole && !hex ? std::optional(number) : std::nullopt;
}

std::optional<int64_t> parsed_integer(std::string_view text, int64_t base) {
  std::string digits(stripped(text));
  std::erase(digits, '_');
  const bool negative = digits.starts_with('-');
  if (negative || digits.starts_with('+')) {
    digits.erase(0, 1);
  }
  const std::string prefix = base == 16 ? "0x" : base == 8 ? "0o" : base == 2 ? "0b" : "";
  if (!prefix.empty() && lower(digits.substr(0, 2)) == prefix) {
    digits.erase(0, 2);
  }
  digits = concat(negative ? "-" : "", digits);
  int64_t number = 0;
  const char* last = digits.data() + digits.size();
  const auto read = std::from_chars(digits.data(), last, number, static_cast<int>(base));
  check(read.ec != std::errc::result_out_of_range, ErrorKind::format, "int: ", text,
        " is beyond 64 bits; use the filter `float`");
  return read.ec == std::errc() && read.ptr == last ? std::optional(number) : std::nullopt;
}

std::optional<Value> truncated(double number) {
  if (!std::isfinite(number)) {
    return std::nullopt;
  }
  check(std::abs(number) < 0x1p63, ErrorKind::format, "int: ", float_text(number),
        " is beyond 64 bits; leave it a float");
  return Value(static_cast<int64_t>(number));
}

Value to_int(const Invocation& in) {
  const Value fallback = in.given.get(0) != nullptr ? in.given.value(0) : Value(0);
  const int64_t base = in.given.integer_or(1, 10);
  check(base >= 2 && base <= 36, ErrorKind::format, "int: base ", base, "; it is 2 to 36");
  check_defined(in.self);
  if (const std::string* text = in.self.text()) {
    if (const std::optional<int64_t> number = parsed_integer(*text, base)) {
      return *number;
    }
    const std::optional<double> number = parsed_float(*text);
    return number ? truncated(*number).value_or(fallback) : fallback;
  }
  if (const std::optional<int64_t> number = in.self.integer()) {
    return *number;
  }
  const double* number = in.self.as<double>();
  return number != nullptr ? truncated(*number).value_or(fallback) : fallback;
}

std::optional<double> as_float(const Value& value) {
  check_defined(value);
  if (const std::string* text = value.text()) {
    return parsed_float(*text);
  }
  if (const std::optional<int64_t> number = value.integer()) {
    return static_cast<double>(*number);
  }
  const double* number = value.as<double>();
  return number != nullptr ? std::optional(*number) : std::nullopt;
}

Value to_float(const Invocation& in) {
  const std::optional<double> number = as_float(in.self);
  return number ? Value(*number) : in.given.get(0) != nullptr ? in.given.value(0) : Value(0.0);
}

Value file_size(const Invocation& in) {
  const std::optional<double> number = as_float(in.self);
  check(number, ErrorKind::format, "filesizeformat: needs a number, not ", type_name(in.self),
        "; convert it first");
  const double bytes = *number;
  const bool binary = in.given.flag_or(0, false);
  const double base = binary ? 1024 : 1000;
  constexpr std::string_view letters = "kMGTPEZY";
  if (bytes == 1) {
    return "1 Byte";
  }
  if (bytes < base) {
    return concat(static_cast<int64_t>(bytes), " Bytes");
  }
  double unit = base;
  size_t step = 0;
  while (step + 1 < letters.size() && bytes >= unit * base) {
    unit *= base;
    ++step;
  }
  const std::string letter = binary && step == 0 ? "K" : std::string(1, letters[step]);
  return format_percent("%.1f ", bytes / unit, in.budget) + letter + (binary ? "iB" : "B");
}

Value round(const Invocation& in) {
  const int64_t digits = in.given.integer_or(0, 0);
  const std::string method(in.given.maybe_text(1).value_or("common"));
  if (method == "common") {
    return rounded(in.self, digits);
  }
  check(method == "ceil" || method == "floor", ErrorKind::format, "round: method '", method,
        "'; it is common, ceil or floor");
  check_defined(in.self);
  const double scale = std::pow(10.0, static_cast<double>(digits));
  const Value scaled = multiply(in.self, scale, in.budget);
  check(scaled.is<double>(), ErrorKind::format, "round: needs a number, not ", type_name(in.self),
        "; convert it with the filter `float`");
  const double number = *scaled.as<double>();
  return (method == "ceil" ? std::ceil(number) : std::floor(number)) / scale;
}

Value absolute(const Invocation& in) {
  check_defined(in.self);
  if (const double* number = in.self.as<double>()) {
    return std::abs(*number);
  }
  const std::optional<int64_t> integer = in.self.integer();
  check(integer, ErrorKind::format, "bad operand type for abs(): '", type_name(in.self),
        "'; it takes a number");
  return *integer < 0 ? negate(in.self) : Value(*integer);
}

Value to_json(const Invocation& in) {
  JsonStyle style;
  style.ensure_ascii = in.given.flag_or(0, false);
  if (const Value* indent = in.given.get(1); indent != nullptr && !indent->is<None>()) {
    style.indent = indent->text() != nullptr
                       ? *indent->text()
                       : justified("", in.given.integer(1), " ", '<', in.budget);
    style.item_separator = ",";
  }
  if (const Value* separators = in.given.get(2); separators != nullptr && !separators->is<None>()) {
    const Items pair = items_of(*separators, in.budget);
    check(pair.size() == 2 && pair[0].text() != nullptr && pair[1].text() != nullptr,
          ErrorKind::format, "tojson: separators are two texts; give such as (',', ':')");
    style.item_separator = *pair[0].text();
    style.key_separator = *pair[1].text();
  }
  style.sort_keys = in.given.flag_or(3, false);
  return json_text(in.self, style, in.budget);
}

constexpr std::array table = {
    Builtin{"abs", "", absolute},
    Builtin{"capitalize", "", converted<capitalized>},
    Builtin{"center", "width?", center},
    Builtin{"e", "", escape},
    Builtin{"escape", "", escape},
    Builtin{"filesizeformat", "binary?", file_size},
    Builtin{"float", "default?", to_float},
    Builtin{"forceescape", "", escape},
    Builtin{"format", "*", format},
    Builtin{"indent", "width? first? blank?", indent},
    Builtin{"int", "default? base?", to_int},
    Builtin{"lower", "", converted<lower>},
    Builtin{"replace", "old new count?", replace},
    Builtin{"round", "precision? method?", round},
    Builtin{"safe", "", string},
    Builtin{"string", "", string},
    Builtin{"title", "", titled},
    Builtin{"tojson", "ensure_ascii? indent? separators? sort_keys?", to_json},
    Builtin{"trim", "chars?", trim},
    Builtin{"truncate", "length? killwords? end? leeway?", truncate},
    Builtin{"upper", "", converted<upper>},
    Builtin{"urlencode", "", url_encode},
    Builtin{"wordcount", "", word_count},
};

}  // namespace

std::span<const Builtin> text_filters() { return table; }

}  // namespace ingot::jinja
