#include "ingot/text/jinja_json.h"

#include <optional>

#include "ingot/base/error.h"
#include "ingot/base/json_library.h"

namespace ingot::jinja {
namespace {

// Builds values while the text is read: nlohmann::json itself would sort the keys and turn large
// integers into floats.
class Builder {
 public:
  using number_integer_t = nlohmann::json::number_integer_t;
  using number_unsigned_t = nlohmann::json::number_unsigned_t;
  using number_float_t = nlohmann::json::number_float_t;
  using string_t = nlohmann::json::string_t;
  using binary_t = nlohmann::json::binary_t;

  bool null() { return put(Value()); }
  bool boolean(bool value) { return put(value); }
  bool number_integer(number_integer_t value) { return put(value); }
  bool number_unsigned(number_unsigned_t value) {
    return value <= INT64_MAX ? put(static_cast<int64_t>(value)) : too_large(std::to_string(value));
  }
  bool number_float(number_float_t value, const string_t& text) {
    return text.find_first_of(".eE") == string_t::npos ? too_large(text) : put(value);
  }
  bool string(string_t& value) { return put(std::move(value)); }
  bool binary(binary_t&) { return false; }
  bool start_object(size_t) { return open(Mapping()); }
  bool key(string_t& value) {
    open_.back().key = std::move(value);
    return true;
  }
  bool end_object() {
    Value value = dict_of(std::get<Mapping>(std::move(open_.back().holds)));
    open_.pop_back();
    return put(std::move(value));
  }
  bool start_array(size_t) { return open(Items()); }
  bool end_array() {
    Value value = list_of(std::get<Items>(std::move(open_.back().holds)));
    open_.pop_back();
    return put(std::move(value));
  }
  bool parse_error(size_t byte, const std::string&, const nlohmann::json::exception& error) {
    byte_ = byte > 0 ? byte - 1 : 0;
    const std::string_view what = error.what();
    const size_t start = what.find(": ");
    problem_ = start == std::string_view::npos ? what : what.substr(start + 2);
    return false;
  }

  Value take() { return std::move(root_); }
  const std::string& problem() const { return problem_; }
  std::optional<size_t> byte() const { return byte_; }

 private:
  struct Open {
    std::variant<Items, Mapping> holds;
    std::string key;
  };

  bool too_large(const std::string& digits) {
    problem_ = concat("integer beyond 64 bits: ", digits.substr(0, 40), "; write it as a text");
    return false;
  }
  bool open(std::variant<Items, Mapping> holds) {
    if (open_.size() >= deepest_value) {
      problem_ = concat("lists and objects lie deeper than ", deepest_value,
                        " in one another; flatten it");
      return false;
    }
    open_.push_back({std::move(holds), ""});
    return true;
  }
  bool put(Value value) {
    if (open_.empty()) {
      root_ = std::move(value);
    } else if (Items* items = std::get_if<Items>(&open_.back().holds)) {
      items->push_back(std::move(value));
    } else {
      std::get<Mapping>(open_.back().holds).set(open_.back().key, std::move(value));
    }
    return true;
  }

  std::vector<Open> open_;
  Value root_;
  std::string problem_;
  std::optional<size_t> byte_;
};

}  // namespace

Value parse_json_value(std::string_view text, const std::string& name) {
  Builder builder;
  if (nlohmann::json::sax_parse(text, &builder)) {
    return builder.take();
  }
  if (!builder.byte()) {
    throw Error(ErrorKind::format, concat(name, ": ", builder.problem()));
  }
  int64_t line = 1;
  int64_t column = 1;
  for (const char c : text.substr(0, *builder.byte())) {
    column = c == '\n' ? 1 : column + 1;
    line += c == '\n' ? 1 : 0;
  }
  throw Error(ErrorKind::format,
              concat(name, ":", line, ":", column, ": not valid JSON: ", builder.problem()));
}

}  // namespace ingot::jinja
