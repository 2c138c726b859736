#include "ingot/text/jinja_print.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "ingot/base/error.h"
#include "ingot/text/jinja_budget.h"
#include "ingot/text/jinja_text.h"

namespace ingot::jinja {
namespace {

void append_hex(std::string& out, std::string_view prefix, uint32_t number, int digits) {
  constexpr std::string_view hex = "0123456789abcdef";
  out += prefix;
  for (int shift = 4 * (digits - 1); shift >= 0; shift -= 4) {
    out += hex[(number >> shift) & 15];
  }
}

// Writes values as Python represents them. Counts bytes while it writes: lists that hold one
// another many times over would print without end.
class Printer {
 public:
  explicit Printer(Budget& budget) : budget_(budget) {}

  void value(const Value& value) {
    std::visit([this](const auto& one) { write(one); }, value.data());
  }
  std::string take() { return std::move(out_); }

 private:
  void put(std::string_view text) {
    budget_.bytes(text.size());
    out_ += text;
  }
  void write(None) { put("None"); }
  void write(const Undefined&) { put("Undefined"); }
  void write(bool truth) { put(truth ? "True" : "False"); }
  void write(int64_t number) { put(std::to_string(number)); }
  void write(double number) { put(float_text(number)); }
  void write(const Text& text) { put(represented_text(*text.held)); }
  void write(const List& list) { items("[", list.held->items, "]"); }
  void write(const Tuple& tuple) {
    items("(", tuple.held->items, tuple.held->items.size() == 1 ? ",)" : ")");
  }
  void write(const Dict& dict) { members(*dict.held); }
  void write(const DictView& view) {
    put(type_name(Value(view)));
    put("([");
    bool first = true;
    for (const auto& [key, held] : view.dict.held->items()) {
      put(first ? "" : ", ");
      first = false;
      if (view.of == DictView::Of::items) {
        items("(", {key, held}, ")");
      } else {
        value(view.of == DictView::Of::keys ? key : held);
      }
    }
    put("])");
  }
  void write(const Range& range) {
    put(concat("range(", range.start, ", ", range.stop));
    put(range.step == 1 ? ")" : concat(", ", range.step, ")"));
  }
  void write(const Stream& stream) { put(concat("<", stream.type, " object>")); }
  void write(Namespace* names) {
    check(++depth_ <= deepest_value, ErrorKind::format,
          "namespace: holds itself and so cannot be printed; print its members");
    put("<Namespace ");
    members(names->members);
    put(">");
    --depth_;
  }
  void write(const std::shared_ptr<const Object>& object) { put(object->text); }

  void items(std::string_view open, const Items& all, std::string_view close) {
    put(open);
    for (size_t i = 0; i < all.size(); ++i) {
      put(i == 0 ? "" : ", ");
      value(all[i]);
    }
    put(close);
  }
  void members(const Mapping& mapping) {
    put("{");
    bool first = true;
    for (const auto& [key, held] : mapping.items()) {
      put(first ? "" : ", ");
      first = false;
      value(key);
      put(": ");
      value(held);
    }
    put("}");
  }

  Budget& budget_;
  std::string out_;
  int32_t depth_ = 0;
};

class JsonPrinter {
 public:
  JsonPrinter(const JsonStyle& style, Budget& budget) : style_(style), budget_(budget) {}

  void value(const Value& one) {
    if (const std::string* text = one.text()) {
      quoted(*text);
    } else if (one.is<None>()) {
      put("null");
    } else if (const bool* truth = one.as<bool>()) {
      put(*truth ? "true" : "false");
    } else if (const int64_t* integer = one.as<int64_t>()) {
      put(std::to_string(*integer));
    } else if (const double* number = one.as<double>()) {
      put(json_number(*number));
    } else if (const Items* items = one.list()) {
      array(*items);
    } else if (const Mapping* mapping = one.mapping()) {
      object(*mapping);
    } else {
      throw Error(ErrorKind::format,
                  concat("tojson: object of type ", type_name(one), " is not JSON serializable; ",
                         one.is<Undefined>() ? "test it with `is defined` first"
                                             : "make it a list or a text first"));
    }
  }
  std::string take() { return std::move(out_); }

 private:
  static std::string json_number(double number) {
    if (std::isfinite(number)) {
      return float_text(number);
    }
    return std::isnan(number) ? "NaN" : number > 0 ? "Infinity" : "-Infinity";
  }
  void put(std::string_view text) {
    budget_.bytes(text.size());
    out_ += text;
  }
  void quoted(std::string_view text) {
    std::string out = "\"";
    for (size_t at = 0; at < text.size();) {
      const size_t start = at;
      const char32_t c = next_character(text, at);
      append_json(out, c, text.substr(start, at - start));
    }
    put(out + "\"");
  }
  void append_json(std::string& out, char32_t c, std::string_view bytes) const {
    switch (c) {
      case '"': out += "\\\""; return;
      case '\\': out += "\\\\"; return;
      case '\n': out += "\\n"; return;
      case '\r': out += "\\r"; return;
      case '\t': out += "\\t"; return;
      case '\f': out += "\\f"; return;
      case '\b': out += "\\b"; return;
      default: break;
    }
    if (c >= 32 && (c < 127 || !style_.ensure_ascii)) {
      out += bytes;
    } else if (c < 0x10000) {
      append_hex(out, "\\u", c, 4);
    } else {
      append_hex(out, "\\u", 0xd800 + ((c - 0x10000) >> 10), 4);
      append_hex(out, "\\u", 0xdc00 + ((c - 0x10000) & 0x3ff), 4);
    }
  }
  void new_line() {
    if (style_.indent) {
      put("\n");
      for (int32_t i = 0; i < level_; ++i) {
        put(*style_.indent);
      }
    }
  }
  void array(const Items& items) {
    if (items.empty()) {
      return put("[]");
    }
    put("[");
    ++level_;
    for (size_t i = 0; i < items.size(); ++i) {
      put(i == 0 ? "" : style_.item_separator);
      new_line();
      value(items[i]);
    }
    --level_;
    new_line();
    put("]");
  }
  static std::string key_text(const Value& key) {
    if (const std::string* text = key.text()) {
      return *text;
    }
    if (const bool* truth = key.as<bool>()) {
      return *truth ? "true" : "false";
    }
    if (const int64_t* integer = key.as<int64_t>()) {
      return std::to_string(*integer);
    }
    if (const double* number = key.as<double>()) {
      return json_number(*number);
    }
    check(key.is<None>(), ErrorKind::format, "tojson: a key of a dict is a ", type_name(key),
          ", which JSON has no keys of; use a text");
    return "null";
  }
  void object(const Mapping& mapping) {
    if (mapping.items().empty()) {
      return put("{}");
    }
    std::vector<const std::pair<Value, Value>*> members;
    for (const auto& member : mapping.items()) {
      members.push_back(&member);
    }
    if (style_.sort_keys) {
      std::stable_sort(members.begin(), members.end(), [](const auto* a, const auto* b) {
        return key_text(a->first) < key_text(b->first);
      });
    }
    put("{");
    ++level_;
    for (size_t i = 0; i < members.size(); ++i) {
      put(i == 0 ? "" : style_.item_separator);
      new_line();
      quoted(key_text(members[i]->first));
      put(style_.key_separator);
      value(members[i]->second);
    }
    --level_;
    new_line();
    put("}");
  }

  const JsonStyle& style_;
  Budget& budget_;
  std::string out_;
  int32_t level_ = 0;
};

}  // namespace

std::string printed(const Value& value, Budget& budget) {
  if (const std::string* text = value.text()) {
    budget.bytes(text->size());
    return *text;
  }
  return value.is<Undefined>() ? "" : represented(value, budget);
}

std::string represented(const Value& value, Budget& budget) {
  Printer printer(budget);
  printer.value(value);
  return printer.take();
}

std::string represented_text(std::string_view text) {
  const bool double_quotes =
      text.find('\'') != std::string_view::npos && text.find('"') == std::string_view::npos;
  const char quote = double_quotes ? '"' : '\'';
  std::string out(1, quote);
  for (size_t at = 0; at < text.size();) {
    const size_t start = at;
    const char32_t c = next_character(text, at);
    if (c == static_cast<char32_t>(quote) || c == '\\') {
      out += '\\';
      out += static_cast<char>(c);
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\r') {
      out += "\\r";
    } else if (c == '\t') {
      out += "\\t";
    } else if (is_printable(c)) {
      out += text.substr(start, at - start);
    } else if (c < 0x100) {
      append_hex(out, "\\x", c, 2);
    } else if (c < 0x10000) {
      append_hex(out, "\\u", c, 4);
    } else {
      append_hex(out, "\\U", c, 8);
    }
  }
  return out + quote;
}

std::string float_text(double number) {
  if (!std::isfinite(number)) {
    return std::isnan(number) ? "nan" : number > 0 ? "inf" : "-inf";
  }
  char buffer[40];
  const auto end =
      std::to_chars(buffer, buffer + sizeof buffer, number, std::chars_format::scientific);
  const std::string_view text(buffer, static_cast<size_t>(end.ptr - buffer));
  const size_t mark = text.find('e');
  int exponent = 0;
  std::from_chars(text.data() + mark + (text[mark + 1] == '+' ? 2 : 1), end.ptr, exponent);
  if (exponent < -4 || exponent >= 16) {
    return std::string(text);
  }
  const auto fixed =
      std::to_chars(buffer, buffer + sizeof buffer, number, std::chars_format::fixed);
  std::string out(buffer, static_cast<size_t>(fixed.ptr - buffer));
  return out.find('.') == std::string::npos ? out + ".0" : out;
}

std::string json_text(const Value& value, const JsonStyle& style, Budget& budget) {
  JsonPrinter printer(style, budget);
  printer.value(value);
  return printer.take();
}

}  // namespace ingot::jinja
