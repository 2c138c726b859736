#include <algorithm>
#include <array>
#include <unordered_set>

#include "ingot/base/error.h"
#include "ingot/text/jinja_budget.h"
#include "ingot/text/jinja_builtin.h"
#include "ingot/text/jinja_interpreter.h"
#include "ingot/text/jinja_operators.h"
#include "ingot/text/jinja_print.h"
#include "ingot/text/jinja_text.h"

namespace ingot::jinja {
namespace {

// Filters of lists and dicts.

Items walk(const Invocation& in) { return items_of(in.self, in.budget); }

Value count(const Invocation& in) {
  const std::optional<int64_t> size = length(in.self);
  check(size, ErrorKind::format, "object of type '", type_name(in.self),
        "' has no len(); make it a list with the filter `list`");
  return *size;
}

Value first(const Invocation& in) {
  if (const Stream* stream = in.self.as<Stream>()) {  // takes one, leaves the others
    Stream::State& state = *stream->state;
    return state.next < state.items.size() ? state.items[state.next++]
                                           : undefined("no first item, sequence was empty");
  }
  const Items items = walk(in);
  return items.empty() ? undefined("no first item, sequence was empty") : items.front();
}

Value last(const Invocation& in) {
  check(!in.self.is<Stream>(), ErrorKind::format, "'", type_name(in.self),
        "' object is not reversible; make it a list with the filter `list`");
  const Items items = walk(in);
  return items.empty() ? undefined("no last item, sequence was empty") : items.back();
}

Value list(const Invocation& in) { return list_of(walk(in)); }

Value reverse(const Invocation& in) {
  Items items = walk(in);
  std::reverse(items.begin(), items.end());
  if (in.self.text() != nullptr) {
    std::string out;
    for (const Value& one : items) {
      out += *one.text();
    }
    return out;
  }
  return in.self.is<Stream>() ? list_of(std::move(items)) : stream_of(std::move(items), "reversed");
}

// What a sort compares: the item or its attributes, texts in lower case unless case counts.
class Key {
 public:
  Key(const Invocation& in, const Value* attribute, bool case_sensitive, bool several)
      : in_(in), case_sensitive_(case_sensitive) {
    if (attribute == nullptr || attribute->is<None>()) {
      return;
    }
    if (several && attribute->text() != nullptr) {
      for (const std::string_view path : split(*attribute->text(), ",", -1)) {
        paths_.emplace_back(path);
      }
    } else {
      paths_.push_back(*attribute);
    }
  }

  Value of(const Value& item) const {
    if (paths_.size() <= 1) {
      return folded(paths_.empty() ? item : in_.machine.attribute_path(item, paths_[0]));
    }
    Items all;
    for (const Value& path : paths_) {
      all.push_back(folded(in_.machine.attribute_path(item, path)));
    }
    return list_of(std::move(all));
  }

 private:
  Value folded(Value value) const {
    return case_sensitive_ || value.text() == nullptr ? value : Value(lower(*value.text()));
  }

  const Invocation& in_;
  std::vector<Value> paths_;
  bool case_sensitive_;
};

Items sorted(const Invocation& in, const Items& items, const std::vector<Value>& keys,
             bool reversed) {
  std::vector<size_t> order(items.size());
  for (size_t i = 0; i < order.size(); ++i) {
    order[i] = i;
  }
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return compare(keys[reversed ? b : a], keys[reversed ? a : b], "<", in.budget) < 0;
  });
  Items out;
  for (const size_t i : order) {
    out.push_back(items[i]);
  }
  return out;
}

std::vector<Value> keys_of(const Items& items, const Key& key) {
  std::vector<Value> keys;
  for (const Value& item : items) {
    keys.push_back(key.of(item));
  }
  return keys;
}

Value sort(const Invocation& in) {
  const Items items = walk(in);
  const Key key(in, in.given.get(2), in.given.flag_or(1, false), true);
  return list_of(sorted(in, items, keys_of(items, key), in.given.flag_or(0, false)));
}

Value dict_sort(const Invocation& in) {
  check_defined(in.self);
  check(in.self.mapping() != nullptr, ErrorKind::format, "dictsort: needs a dict, not ",
        type_name(in.self), "; use the filter `sort`");
  const std::string by(in.given.maybe_text(1).value_or("key"));
  check(by == "key" || by == "value", ErrorKind::format, "dictsort: by '", by,
        "'; it is key or value");
  const Key key(in, nullptr, in.given.flag_or(0, false), false);
  Items pairs;
  std::vector<Value> keys;
  for (const auto& [name, value] : in.self.mapping()->items()) {
    in.budget.items(2);
    pairs.push_back(tuple_of({name, value}));
    keys.push_back(key.of(by == "key" ? name : value));
  }
  return list_of(sorted(in, pairs, keys, in.given.flag_or(2, false)));
}

template <bool largest>
Value extreme(const Invocation& in) {
  const Items items = walk(in);
  if (items.empty()) {
    return undefined("no aggregated item, sequence was empty");
  }
  const Key key(in, in.given.get(1), in.given.flag_or(0, false), false);
  const std::vector<Value> keys = keys_of(items, key);
  size_t best = 0;
  for (size_t i = 1; i < items.size(); ++i) {
    const auto order = compare(keys[i], keys[best], largest ? ">" : "<", in.budget);
    best = (largest ? order > 0 : order < 0) ? i : best;
  }
  return items[best];
}

Value unique(const Invocation& in) {
  const Key key(in, in.given.get(1), in.given.flag_or(0, false), false);
  std::unordered_set<std::string> seen;
  Items out;
  for (const Value& item : walk(in)) {
    if (seen.insert(hash_word(key.of(item))).second) {
      out.push_back(item);
    }
  }
  return stream_of(std::move(out));
}

Value sum(const Invocation& in) {
  Value total = in.given.get(1) != nullptr ? in.given.value(1) : Value(0);
  check(total.text() == nullptr, ErrorKind::format,
        "sum() can't sum strings; join them with the filter `join`");
  const Key key(in, in.given.get(0), true, false);
  for (const Value& item : walk(in)) {
    total = add(total, key.of(item), in.budget);
  }
  return total;
}

Value join(const Invocation& in) {
  const std::string separator =
      in.given.get(0) != nullptr ? printed(in.given.value(0), in.budget) : "";
  const Key key(in, in.given.get(1), true, false);
  std::string out;
  bool start = true;
  for (const Value& item : walk(in)) {
    in.budget.bytes(separator.size());
    out += (start ? "" : separator) + printed(key.of(item), in.budget);
    start = false;
  }
  return out;
}

Value fallback(const Invocation& in) {
  const bool missing = in.self.is<Undefined>() || (in.given.flag_or(1, false) && !truth(in.self));
  return !missing ? in.self : in.given.get(0) != nullptr ? in.given.value(0) : Value("");
}

Value attribute(const Invocation& in) {
  const Value found = in.machine.attribute(in.self, in.given.text(0));
  const bool key = in.self.mapping() != nullptr && found.object() == nullptr;
  return key ? undefined(concat("'dict object' has no attribute '", in.given.text(0),
                                "'; take a key by [", represented_text(in.given.text(0)), "]"))
             : found;
}

Value pairs(const Invocation& in) {
  if (in.self.is<Undefined>()) {
    return stream_of({});
  }
  check(in.self.mapping() != nullptr, ErrorKind::format,
        "items: can only get item pairs from a mapping, not ", type_name(in.self), "; give a dict");
  return stream_of(items_of(DictView{*in.self.as<Dict>(), DictView::Of::items}, in.budget));
}

Value map(const Invocation& in) {
  Items out;
  const Items items = walk(in);
  if (!in.raw.positional.empty()) {
    Arguments rest{{in.raw.positional.begin() + 1, in.raw.positional.end()}, in.raw.named};
    const std::string* name = in.raw.positional[0].text();
    check(name != nullptr, ErrorKind::format, "map: the name of a filter must be a text, not ",
          type_name(in.raw.positional[0]), "; quote it");
    for (const Value& item : items) {
      out.push_back(in.machine.filter(*name, item, rest));
    }
    return stream_of(std::move(out));
  }
  const Bound given("map", "attribute default?", in.raw);
  for (const Value& item : items) {
    Value found = in.machine.attribute_path(item, given.value(0));
    const bool replace =
        found.is<Undefined>() && given.get(1) != nullptr && !given.value(1).is<None>();
    out.push_back(replace ? given.value(1) : std::move(found));
  }
  return stream_of(std::move(out));
}

template <bool by_attribute, bool keep>
Value select(const Invocation& in) {
  const size_t at = by_attribute ? 1 : 0;
  const Items& given = in.raw.positional;
  check(given.size() >= at, ErrorKind::format,
        "selectattr, rejectattr: missing parameter for "
        "attribute name; give one");
  const std::string* test = given.size() > at ? given[at].text() : nullptr;
  check(given.size() <= at || test != nullptr, ErrorKind::format,
        "select, reject: the name of a test must be a text; quote it");
  const Arguments rest{
      {given.begin() + static_cast<int64_t>(std::min(at + 1, given.size())), given.end()},
      in.raw.named};
  Items out;
  for (const Value& item : walk(in)) {
    const Value subject = by_attribute ? in.machine.attribute_path(item, given[0]) : item;
    const bool holds = test != nullptr ? in.machine.test(*test, subject, rest) : truth(subject);
    if (holds == keep) {
      out.push_back(item);
    }
  }
  return stream_of(std::move(out));
}

Value batch(const Invocation& in) {
  const int64_t size = in.given.integer(0);
  check(size > 0, ErrorKind::format, "batch: of ", size, " items; give a positive number");
  const Value* fill = in.given.get(1);
  Items out;
  Items part;
  for (const Value& item : walk(in)) {
    if (static_cast<int64_t>(part.size()) == size) {
      out.push_back(list_of(std::move(part)));
      part.clear();
    }
    part.push_back(item);
  }
  if (!part.empty()) {
    const int64_t missing = size - static_cast<int64_t>(part.size());
    if (fill != nullptr && !fill->is<None>() && missing > 0) {
      in.budget.items(static_cast<size_t>(missing));
      part.insert(part.end(), static_cast<size_t>(missing), *fill);
    }
    out.push_back(list_of(std::move(part)));
  }
  return stream_of(std::move(out));
}

Value slice(const Invocation& in) {
  const int64_t slices = in.given.integer(0);
  check(slices > 0, ErrorKind::format, "slice: into ", slices, " parts; give a positive number");
  in.budget.items(static_cast<size_t>(std::min<int64_t>(slices, int64_t{1} << 40)));
  const Items items = walk(in);
  const Value* fill = in.given.get(1);
  const auto size = static_cast<int64_t>(items.size());
  Items out;
  auto at = items.begin();
  for (int64_t i = 0; i < slices; ++i) {
    const bool extra = i < size % slices;
    const int64_t count = size / slices + (extra ? 1 : 0);
    Items part(at, at + count);
    at += count;
    if (fill != nullptr && !fill->is<None>() && !extra) {
      part.push_back(*fill);
    }
    out.push_back(list_of(std::move(part)));
  }
  return stream_of(std::move(out));
}

constexpr std::array table = {
    Builtin{"attr", "name", attribute},
    Builtin{"batch", "linecount fill_with?", batch},
    Builtin{"count", "", count},
    Builtin{"d", "default_value? boolean?", fallback},
    Builtin{"default", "default_value? boolean?", fallback},
    Builtin{"dictsort", "case_sensitive? by? reverse?", dict_sort},
    Builtin{"first", "", first},
    Builtin{"items", "", pairs},
    Builtin{"join", "d? attribute?", join},
    Builtin{"last", "", last},
    Builtin{"length", "", count},
    Builtin{"list", "", list},
    Builtin{"map", "*", map},
    Builtin{"max", "case_sensitive? attribute?", extreme<true>},
    Builtin{"min", "case_sensitive? attribute?", extreme<false>},
    Builtin{"reject", "*", select<false, false>},
    Builtin{"rejectattr", "*", select<true, false>},
    Builtin{"reverse", "", reverse},
    Builtin{"select", "*", select<false, true>},
    Builtin{"selectattr", "*", select<true, true>},
    Builtin{"slice", "slices fill_with?", slice},
    Builtin{"sort", "reverse? case_sensitive? attribute?", sort},
    Builtin{"sum", "attribute? start?", sum},
    Builtin{"unique", "case_sensitive? attribute?", unique},
};

}  // namespace

std::span<const Builtin> item_filters() { return table; }

}  // namespace ingot::jinja
