#include <algorithm>

#include "ingot/base/error.h"
#include "ingot/text/jinja_budget.h"
#include "ingot/text/jinja_operators.h"
#include "ingot/text/jinja_text.h"
#include "ingot/text/utf8.h"

namespace ingot::jinja {

// The operators of values that hold others: len, iteration, [key] and slices.

namespace {

Items values_of(const Range& range) {
  Items out;
  for (int64_t i = 0, size = range.size(); i < size; ++i) {
    out.emplace_back(range.at(i));
  }
  return out;
}

std::optional<int64_t> bound(const Value& value) {
  if (value.is<None>()) {
    return std::nullopt;
  }
  check_defined(value);
  const std::optional<int64_t> integer = value.integer();
  check(integer, ErrorKind::format, "slice indices must be integers or None, not ",
        type_name(value), "; round with the filter `int`");
  return integer;
}

// The positions that a slice of `size` items takes: first, step and how many.
struct Positions {
  int64_t first, step, count;
};
Positions positions(int64_t size, const Value& start, const Value& stop, const Value& step) {
  const int64_t stride = bound(step).value_or(1);
  check(stride != 0, ErrorKind::format, "slice step cannot be zero; leave it out");
  const int64_t low = stride > 0 ? 0 : -1;
  const int64_t high = stride > 0 ? size : size - 1;
  const auto within = [&](const Value& value, int64_t otherwise) {
    const std::optional<int64_t> given = bound(value);
    return !given ? otherwise : std::clamp(*given < 0 ? *given + size : *given, low, high);
  };
  const int64_t first = within(start, stride > 0 ? low : high);
  const int64_t end = within(stop, stride > 0 ? high : low);
  return {first, stride, Range{first, end, stride}.size()};
}

}  // namespace

std::optional<int64_t> length(const Value& value) {
  if (const std::string* text = value.text()) {
    return utf8_length(*text);
  }
  if (const Items* items = value.list()) {
    return static_cast<int64_t>(items->size());
  }
  if (const Mapping* mapping = value.mapping()) {
    return static_cast<int64_t>(mapping->items().size());
  }
  if (const DictView* view = value.as<DictView>()) {
    return static_cast<int64_t>(view->dict.held->items().size());
  }
  if (const Range* range = value.as<Range>()) {
    return range->size();
  }
  return value.is<Undefined>() ? std::optional<int64_t>(0) : std::nullopt;
}

std::optional<Items> walked(const Value& value, Budget& budget) {
  budget.items(static_cast<size_t>(length(value).value_or(0)));
  Items out;
  if (const Items* items = value.list()) {
    return *items;
  }
  if (const std::string* text = value.text()) {
    for (std::string& one : characters_of(*text)) {
      out.emplace_back(std::move(one));
    }
    return out;
  }
  const DictView* view = value.as<DictView>();
  if (const Mapping* mapping = view != nullptr ? view->dict.held.get() : value.mapping()) {
    for (const auto& [key, held] : mapping->items()) {
      out.push_back(view == nullptr || view->of == DictView::Of::keys ? key
                    : view->of == DictView::Of::values                ? held
                                                                      : tuple_of({key, held}));
    }
    return out;
  }
  if (const Range* range = value.as<Range>()) {
    return values_of(*range);
  }
  if (const Stream* stream = value.as<Stream>()) {
    Stream::State& state = *stream->state;
    out.assign(state.items.begin() + static_cast<int64_t>(state.next), state.items.end());
    state.next = state.items.size();
    return out;
  }
  return value.is<Undefined>() ? std::optional(out) : std::nullopt;
}

Items items_of(const Value& value, Budget& budget) {
  std::optional<Items> items = walked(value, budget);
  check(items, ErrorKind::format, "'", type_name(value),
        "' object is not iterable; give a list, dict or text");
  return *std::move(items);
}

std::optional<Value> find_item(const Value& value, const Value& key, Budget& budget) {
  check_defined(value);
  if (const Mapping* mapping = value.mapping()) {
    const bool hashable = !key.is<List>() && !key.is<Dict>() && !key.is<Undefined>();
    const Value* found = hashable ? mapping->find_key(key) : nullptr;
    return found == nullptr ? std::nullopt : std::optional(*found);
  }
  const std::optional<int64_t> place = key.integer();
  const bool ordered = value.list() != nullptr || value.text() != nullptr || value.is<Range>();
  if (!place || !ordered) {
    return std::nullopt;
  }
  const int64_t size = *length(value);
  const int64_t at = *place < 0 ? *place + size : *place;
  if (at < 0 || at >= size) {
    return std::nullopt;
  }
  if (const Items* items = value.list()) {
    return (*items)[static_cast<size_t>(at)];
  }
  if (const Range* range = value.as<Range>()) {
    return Value(range->at(at));
  }
  const std::string& text = *value.text();
  budget.bytes(text.size() / 64);
  const size_t start = byte_of(text, at);
  return Value(
      std::string_view(text).substr(start, byte_of(std::string_view(text).substr(start), 1)));
}

Value sliced(const Value& value, const Value& start, const Value& stop, const Value& step,
             Budget& budget) {
  check_defined(value);
  if (const Range* range = value.as<Range>()) {
    const Positions at = positions(range->size(), start, stop, step);
    const int64_t first = range->at(at.first);
    const int64_t stride = at.count > 1 ? range->at(at.first + at.step) - first : range->step;
    const int64_t end = at.count > 0 ? range->at(at.first + (at.count - 1) * at.step) : first;
    const int64_t beyond = at.count == 0 ? first : end + (stride > 0 ? 1 : -1);
    return Range{first, beyond, stride};
  }
  if (const Items* items = value.list()) {
    const Positions at = positions(static_cast<int64_t>(items->size()), start, stop, step);
    budget.items(static_cast<size_t>(at.count));
    Items out;
    for (int64_t i = 0; i < at.count; ++i) {
      out.push_back((*items)[static_cast<size_t>(at.first + i * at.step)]);
    }
    return value.is<Tuple>() ? tuple_of(std::move(out)) : list_of(std::move(out));
  }
  const std::string* text = value.text();
  if (text == nullptr) {
    return undefined(concat(type_name(value), " object cannot be sliced; slice a list or a text"));
  }
  budget.bytes(text->size());
  const Positions at = positions(utf8_length(*text), start, stop, step);
  if (at.step == 1) {
    const size_t begin = byte_of(*text, at.first);
    const std::string_view rest = std::string_view(*text).substr(begin);
    return rest.substr(0, byte_of(rest, at.count));
  }
  budget.items(text->size());
  const std::vector<std::string> all = characters_of(*text);
  std::string out;
  for (int64_t i = 0; i < at.count; ++i) {
    out += all[static_cast<size_t>(at.first + i * at.step)];
  }
  return out;
}

}  // namespace ingot::jinja
