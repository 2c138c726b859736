#include "ingot/text/jinja_builtin.h"

#include <algorithm>

#include "ingot/base/edit_distance.h"
#include "ingot/base/error.h"
#include "ingot/text/jinja_operators.h"

namespace ingot::jinja {

Bound::Bound(std::string_view function, std::string_view parameters, const Arguments& given)
    : function_(function) {
  if (parameters == "*") {
    return;
  }
  std::vector<bool> optional;
  while (!parameters.empty()) {
    const size_t size = std::min(parameters.find(' '), parameters.size());
    std::string_view name = parameters.substr(0, size);
    parameters.remove_prefix(std::min(size + 1, parameters.size()));
    optional.push_back(name.ends_with('?'));
    name.remove_suffix(optional.back() ? 1 : 0);
    names_.push_back(name);
  }
  values_.resize(names_.size());
  check(given.positional.size() <= names_.size(), ErrorKind::format, function,
        ": too many arguments: it takes ", names_.size(), ", given are ", given.positional.size(),
        "; remove some");
  std::copy(given.positional.begin(), given.positional.end(), values_.begin());
  for (const auto& [name, value] : given.named) {
    const auto at = std::find(names_.begin(), names_.end(), name);
    check(at != names_.end(), ErrorKind::format, function, ": unexpected keyword argument '", name,
          "'; remove it");
    std::optional<Value>& place = values_[static_cast<size_t>(at - names_.begin())];
    check(!place, ErrorKind::format, function, ": argument '", name,
          "' is given twice; remove one");
    place = value;
  }
  for (size_t i = 0; i < names_.size(); ++i) {
    check(values_[i] || optional[i], ErrorKind::format, function, ": missing argument '", names_[i],
          "'; give it");
  }
}

const Value* Bound::get(size_t i) const {
  return i < values_.size() && values_[i] ? &*values_[i] : nullptr;
}

void Bound::wrong_type(size_t i, std::string_view wanted) const {
  check_defined(value(i));
  throw Error(ErrorKind::format, concat(function_, ": argument '", names_[i], "' must be ", wanted,
                                        ", not ", type_name(value(i)), "; convert it first"));
}

const std::string& Bound::text(size_t i) const {
  if (value(i).text() == nullptr) {
    wrong_type(i, "str");
  }
  return *value(i).text();
}

std::optional<std::string_view> Bound::maybe_text(size_t i) const {
  const bool given = get(i) != nullptr && !get(i)->is<None>();
  return given ? std::optional<std::string_view>(text(i)) : std::nullopt;
}

int64_t Bound::integer(size_t i) const {
  const std::optional<int64_t> number = value(i).integer();
  if (!number) {
    wrong_type(i, "int");
  }
  return *number;
}

int64_t Bound::integer_or(size_t i, int64_t fallback) const {
  return get(i) == nullptr || get(i)->is<None>() ? fallback : integer(i);
}

bool Bound::flag_or(size_t i, bool fallback) const {
  return get(i) == nullptr ? fallback : truth(value(i));
}

const Builtin* find_builtin(std::span<const Builtin> table, std::string_view name) {
  const auto at = std::find_if(table.begin(), table.end(),
                               [name](const Builtin& one) { return one.name == name; });
  return at == table.end() ? nullptr : &*at;
}

const Builtin* find_filter(std::string_view name) {
  const Builtin* found = find_builtin(text_filters(), name);
  return found != nullptr ? found : find_builtin(item_filters(), name);
}

void unknown_builtin(std::string_view what, std::string_view name) {
  std::vector<std::string> known;
  const auto add = [&known](std::span<const Builtin> table) {
    for (const Builtin& one : table) {
      known.emplace_back(one.name);
    }
  };
  if (what == "test") {
    add(tests());
  } else {
    add(text_filters());
    add(item_filters());
  }
  throw Error(ErrorKind::format, concat("no ", what, " named '", name, "'; the nearest is '",
                                        nearest_word(name, known), "'"));
}

}  // namespace ingot::jinja
