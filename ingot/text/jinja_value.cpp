#include "ingot/text/jinja_value.h"

#include <algorithm>
#include <cmath>

#include "ingot/base/error.h"
#include "ingot/text/jinja_print.h"

namespace ingot::jinja {
namespace {

constexpr size_t small_mapping = 8;  // searched key by key

constexpr size_t longest_key = size_t{1} << 20;  // bounds tuples that hold one another many times

int32_t checked_depth(int32_t depth) {
  check(depth <= deepest_value, ErrorKind::format, "value: lists and dicts lie deeper than ",
        deepest_value, " in one another; flatten it");
  return depth;
}

}  // namespace

Sequence::Sequence(Items all) : items(std::move(all)), depth(checked_depth(depth_of(items) + 1)) {}

Value::Value(Object object) {
  checked_depth(object.depth);
  data_ = std::make_shared<const Object>(std::move(object));
}

const Value* Mapping::find_word(const std::string& word) const {
  if (items_.size() > small_mapping) {
    const auto at = places_.find(word);
    return at == places_.end() ? nullptr : &items_[at->second].second;
  }
  for (const auto& [key, value] : items_) {
    if (hash_word(key) == word) {
      return &value;
    }
  }
  return nullptr;
}

const Value* Mapping::find_key(const Value& key) const {
  if (const std::string* text = key.text()) {
    return find(std::string_view(*text));
  }
  return find_word(hash_word(key));
}

const Value* Mapping::find(std::string_view key) const {
  if (items_.size() > small_mapping) {
    return find_word(hash_word(Value(key)));
  }
  for (const auto& [name, value] : items_) {
    if (const std::string* text = name.text(); text != nullptr && *text == key) {
      return &value;
    }
  }
  return nullptr;
}

void Mapping::index(const std::string& word) {
  if (items_.size() == small_mapping + 1) {
    for (size_t i = 0; i < items_.size(); ++i) {
      places_[hash_word(items_[i].first)] = i;
    }
  } else if (items_.size() > small_mapping) {
    places_[word] = items_.size() - 1;
  }
}

void Mapping::set(const Value& key, Value value) {
  const std::string word = hash_word(key);
  depth_ = checked_depth(std::max(depth_, depth_of(value) + 1));
  if (const Value* there = find_word(word)) {
    const_cast<Value&>(*there) = std::move(value);
    return;
  }
  items_.emplace_back(key, std::move(value));
  index(word);
}

int64_t Range::size() const {
  const bool up = step > 0;
  if (up ? start >= stop : start <= stop) {
    return 0;
  }
  const auto from = static_cast<uint64_t>(up ? start : stop);
  const auto to = static_cast<uint64_t>(up ? stop : start);
  const uint64_t stride =
      up ? static_cast<uint64_t>(step) : uint64_t{0} - static_cast<uint64_t>(step);
  return static_cast<int64_t>(std::min<uint64_t>((to - from - 1) / stride + 1, INT64_MAX));
}

int64_t Range::at(int64_t i) const {
  // Modulo 2^64, where i · step alone may not fit.
  return static_cast<int64_t>(static_cast<uint64_t>(start) +
                              static_cast<uint64_t>(i) * static_cast<uint64_t>(step));
}

const Items* Value::list() const {
  if (const List* list = as<List>()) {
    return &list->held->items;
  }
  const Tuple* tuple = as<Tuple>();
  return tuple == nullptr ? nullptr : &tuple->held->items;
}

const Mapping* Value::mapping() const {
  const Dict* dict = as<Dict>();
  return dict == nullptr ? nullptr : dict->held.get();
}

const Object* Value::object() const {
  const auto* object = as<std::shared_ptr<const Object>>();
  return object == nullptr ? nullptr : object->get();
}

std::optional<int64_t> Value::integer() const {
  if (const bool* truth = as<bool>()) {
    return *truth ? 1 : 0;
  }
  const int64_t* number = as<int64_t>();
  return number == nullptr ? std::nullopt : std::optional(*number);
}

Value undefined(std::string why) {
  return Undefined{std::make_shared<const std::string>(std::move(why))};
}
Value list_of(Items items) { return List{std::make_shared<const Sequence>(std::move(items))}; }
Value tuple_of(Items items) { return Tuple{std::make_shared<const Sequence>(std::move(items))}; }
Value dict_of(Mapping mapping) { return Dict{std::make_shared<const Mapping>(std::move(mapping))}; }
Value stream_of(Items items, std::string_view type) {
  return Stream{std::make_shared<Stream::State>(Stream::State{std::move(items), 0}), type};
}
Value function_of(std::string name, std::function<Value(const Arguments&)> call, int32_t depth) {
  std::string text = concat("<function ", name, ">");
  return Object{"function", std::move(text), {}, std::move(call), depth};
}

int32_t depth_of(const Items& items) {
  int32_t depth = 0;
  for (const Value& item : items) {
    depth = std::max(depth, depth_of(item));
  }
  return depth;
}

int32_t depth_of(const Value& value) {
  if (const List* list = value.as<List>()) {
    return list->held->depth;
  }
  if (const Tuple* tuple = value.as<Tuple>()) {
    return tuple->held->depth;
  }
  if (const Dict* dict = value.as<Dict>()) {
    return dict->held->depth();
  }
  if (const DictView* view = value.as<DictView>()) {
    return view->dict.held->depth() + 1;
  }
  if (const Stream* stream = value.as<Stream>()) {
    return depth_of(stream->state->items) + 1;
  }
  const Object* object = value.object();
  return object == nullptr ? 0 : object->depth;
}

std::string_view type_name(const Value& value) {
  struct Namer {
    std::string_view operator()(None) const { return "NoneType"; }
    std::string_view operator()(const Undefined&) const { return "Undefined"; }
    std::string_view operator()(bool) const { return "bool"; }
    std::string_view operator()(int64_t) const { return "int"; }
    std::string_view operator()(double) const { return "float"; }
    std::string_view operator()(const Text&) const { return "str"; }
    std::string_view operator()(const List&) const { return "list"; }
    std::string_view operator()(const Tuple&) const { return "tuple"; }
    std::string_view operator()(const Dict&) const { return "dict"; }
    std::string_view operator()(const DictView& view) const {
      return view.of == DictView::Of::keys     ? "dict_keys"
             : view.of == DictView::Of::values ? "dict_values"
                                               : "dict_items";
    }
    std::string_view operator()(const Range&) const { return "range"; }
    std::string_view operator()(const Stream& stream) const { return stream.type; }
    std::string_view operator()(Namespace*) const { return "Namespace"; }
    std::string_view operator()(const std::shared_ptr<const Object>& object) const {
      return object->type;
    }
  };
  return std::visit(Namer(), value.data());
}

std::string hash_word(const Value& key) {
  if (const std::string* text = key.text()) {
    return "s" + *text;
  }
  if (const std::optional<int64_t> integer = key.integer()) {
    return concat("n", *integer);
  }
  if (const double* number = key.as<double>()) {  // 2.0 and 2 are the same key
    const bool whole = std::abs(*number) < 0x1p63 && *number == std::floor(*number);
    return whole ? concat("n", static_cast<int64_t>(*number)) : concat("n", float_text(*number));
  }
  if (key.is<None>()) {
    return "0";
  }
  if (const Tuple* tuple = key.as<Tuple>()) {
    std::string word = "(";
    for (const Value& item : tuple->held->items) {
      const std::string part = hash_word(item);
      word += std::to_string(part.size()) + ":" + part;
      check(word.size() < longest_key, ErrorKind::format, "tuple: too large for the key of a dict");
    }
    return word;
  }
  throw Error(ErrorKind::format,
              concat("unhashable type: '", type_name(key), "'; use a text or number as the key"));
}

}  // namespace ingot::jinja
