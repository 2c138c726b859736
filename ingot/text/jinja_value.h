#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

namespace ingot::jinja {

// The values of a template: those of Python that templates meet. Values are cheap to copy, since
// what is large is shared, and cannot be changed, as templates may not change what they are given;
// only a Namespace has members that are set.

class Value;
using Items = std::vector<Value>;

struct None {};

// What a name or member that does not exist gives: prints as nothing, counts as false, iterates as
// nothing, and is an error, with the reason kept here, in anything else.
struct Undefined {
  std::shared_ptr<const std::string> why;
};

struct Text {
  std::shared_ptr<const std::string> held;  // UTF-8
};

// How deep lists and dicts may lie in one another. It bounds every recursion over a value.
inline constexpr int32_t deepest_value = 400;

struct Sequence {
  explicit Sequence(Items all);  // throws Error(format) beyond deepest_value
  Items items;
  int32_t depth = 1;
};
struct List {
  std::shared_ptr<const Sequence> held;
};
struct Tuple {
  std::shared_ptr<const Sequence> held;
};

// Keys and values in the order in which keys were first set.
class Mapping {
 public:
  void set(const Value& key, Value value);        // throws Error(format) where a key cannot be one
  const Value* find(std::string_view key) const;  // null where absent
  const Value* find_key(const Value& key) const;
  const std::vector<std::pair<Value, Value>>& items() const { return items_; }
  int32_t depth() const { return depth_; }

 private:
  const Value* find_word(const std::string& word) const;
  void index(const std::string& word);

  std::vector<std::pair<Value, Value>> items_;
  std::unordered_map<std::string, size_t> places_;  // by hash_word of the key; only for larger ones
  int32_t depth_ = 1;
};
struct Dict {
  std::shared_ptr<const Mapping> held;
};

struct DictView {
  enum class Of : uint8_t { keys, values, items };
  Dict dict;
  Of of = Of::keys;
};

// range(start, stop, step); step is not 0.
struct Range {
  int64_t start = 0, stop = 0, step = 1;
  int64_t size() const;
  int64_t at(int64_t i) const;  // 0 ≤ i < size()
};

// A result that can be walked once, such as that of the filter `map`; what was taken is gone.
struct Stream {
  struct State {
    Items items;
    size_t next = 0;
  };
  std::shared_ptr<State> state;
  std::string_view type = "generator";
};

struct Namespace;  // below
struct Arguments;

// Functions, methods, macros, `loop`, and other things that have members or can be called.
struct Object {
  std::string type;  // Python's name of the type, for messages
  std::string text;  // as it prints
  std::function<std::optional<Value>(std::string_view)> attribute;  // empty: no members
  std::function<Value(const Arguments&)> call;                      // empty: cannot be called
  int32_t depth = 0;  // of the values that it holds, plus one where it holds any
};

class Value {
 public:
  using Data = std::variant<None, Undefined, bool, int64_t, double, Text, List, Tuple, Dict,
                            DictView, Range, Stream, Namespace*, std::shared_ptr<const Object>>;

  Value() = default;  // none
  template <class T>
    requires std::same_as<T, bool>
  Value(T truth) : data_(truth) {}
  template <class T>
    requires(std::integral<T> && !std::same_as<T, bool>)
  Value(T number) : data_(static_cast<int64_t>(number)) {}
  Value(double number) : data_(number) {}
  Value(std::string text) : data_(Text{std::make_shared<const std::string>(std::move(text))}) {}
  Value(std::string_view text) : Value(std::string(text)) {}
  Value(const char* text) : Value(std::string(text)) {}
  Value(Undefined undefined) : data_(std::move(undefined)) {}
  Value(Text text) : data_(std::move(text)) {}
  Value(List list) : data_(std::move(list)) {}
  Value(Tuple tuple) : data_(std::move(tuple)) {}
  Value(Dict dict) : data_(std::move(dict)) {}
  Value(DictView view) : data_(std::move(view)) {}
  Value(Range range) : data_(range) {}
  Value(Stream stream) : data_(std::move(stream)) {}
  Value(Namespace* names) : data_(names) {}
  Value(Object object);  // throws Error(format) beyond deepest_value

  const Data& data() const { return data_; }
  template <class T>
  const T* as() const {
    return std::get_if<T>(&data_);
  }
  template <class T>
  bool is() const {
    return std::holds_alternative<T>(data_);
  }

  const std::string* text() const {  // null where this is no text
    const Text* held = as<Text>();
    return held == nullptr ? nullptr : held->held.get();
  }
  const Items* list() const;       // of a list or a tuple
  const Mapping* mapping() const;  // of a dict
  const Object* object() const;
  std::optional<int64_t> integer() const;  // a truth value is 0 or 1

 private:
  Data data_;
};

struct Arguments {
  Items positional;
  std::vector<std::pair<std::string, Value>> named;
};

// What `namespace()` makes: the one value whose members are set. The rendering that made it owns
// it, so that one that holds itself is no leak.
struct Namespace {
  Mapping members;
};

Value undefined(std::string why);
Value list_of(Items items);
Value tuple_of(Items items);
Value dict_of(Mapping mapping);
Value stream_of(Items items, std::string_view type = "generator");
Value function_of(std::string name, std::function<Value(const Arguments&)> call, int32_t depth);

int32_t depth_of(const Items& items);  // the most of any
// How deep the lists and dicts within `value` lie; 0 for a plain value.
int32_t depth_of(const Value& value);

// Python's name of the type: "str", "int", "NoneType", "dict", …
std::string_view type_name(const Value& value);

// A text that is equal for equal keys of a dict and for no others. Throws Error(format) for a value
// that cannot be a key: "unhashable type: 'list'".
std::string hash_word(const Value& key);

}  // namespace ingot::jinja
