#include "ingot/base/describe.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "ingot/base/edit_distance.h"
#include "ingot/base/error.h"

namespace ingot {
namespace {

constexpr size_t kinds = 7;  // FieldTarget lists the plain types, then the optional ones, alike

constexpr std::array<std::string_view, kinds> kind_names = {
    "true or false",      "an integer",        "a number",       "a text",
    "a list of integers", "a list of numbers", "a list of texts"};

bool is_list(FieldKind kind) { return kind >= FieldKind::integers; }

FieldKind item_kind(FieldKind kind) {
  switch (kind) {
    case FieldKind::integers: return FieldKind::integer;
    case FieldKind::numbers: return FieldKind::number;
    case FieldKind::texts: return FieldKind::text;
    default: return kind;
  }
}

// JSON has no infinity, so it travels as a word.
std::optional<double> infinity_named(const std::string& word) {
  if (word == "inf" || word == "-inf") {
    return word == "inf" ? HUGE_VAL : -HUGE_VAL;
  }
  return std::nullopt;
}

std::optional<Scalar> converted(const Scalar& value, FieldKind kind) {
  if (value.index() == static_cast<size_t>(kind)) {  // FieldKind and Scalar list them alike
    return value;
  }
  if (kind == FieldKind::number) {
    if (const auto* whole = std::get_if<int64_t>(&value)) {
      return static_cast<double>(*whole);
    }
    if (const auto* word = std::get_if<std::string>(&value)) {
      return infinity_named(*word);
    }
  }
  return std::nullopt;
}

void check_range(const Field& field, const Scalar& value) {
  if (const double* x = std::get_if<double>(&value); x != nullptr && std::isnan(*x)) {
    throw Error(ErrorKind::config, concat(field.path, ": not a number: got nan"));
  }
  check(field.range.contains(value), ErrorKind::config, field.path, ": out of range: got ",
        text_of(value), ", allowed is ", field.range.text());
}

Scalar checked_scalar(const Field& field, const Scalar& value) {
  const std::optional<Scalar> typed = converted(value, item_kind(field.kind()));
  check(typed, ErrorKind::config, field.path, ": wrong type: expected ",
        kind_names[static_cast<size_t>(field.kind())], ", got ", type_of(value),
        is_list(field.kind()) ? " in the list: " : ": ", text_of(value));
  check_range(field, *typed);
  return *typed;
}

Value widened(const Scalar& scalar) {
  return std::visit([](const auto& x) { return Value(x); }, scalar);
}

std::optional<Scalar> narrowed(const Value& value) {
  return std::visit(
      [](const auto& x) -> std::optional<Scalar> {
        if constexpr (std::is_constructible_v<Scalar, decltype(x)>) {
          return Scalar(x);
        } else {
          return std::nullopt;
        }
      },
      value);
}

template <class T>
Value read(const T& field) {
  return field;
}
template <class T>
Value read(const std::vector<T>& field) {
  return std::vector<Scalar>(field.begin(), field.end());
}

template <class T>
void write(T& field, const Value& value) {
  field = std::get<T>(value);
}
template <class T>
void write(std::vector<T>& field, const Value& value) {
  field.clear();
  for (const Scalar& item : std::get<std::vector<Scalar>>(value)) {
    field.push_back(std::get<T>(item));
  }
}

struct Read {
  template <class T>
  std::optional<Value> operator()(const T* field) const {
    return read(*field);
  }
  template <class T>
  std::optional<Value> operator()(const std::optional<T>* field) const {
    return *field ? std::optional<Value>(read(**field)) : std::nullopt;
  }
};

struct Write {
  const std::optional<Value>& value;

  template <class T>
  void operator()(T* field) const {
    write(*field, *value);
  }
  template <class T>
  void operator()(std::optional<T>* field) const {
    if (value) {
      write(field->emplace(), *value);
    } else {
      field->reset();
    }
  }
};

}  // namespace

FieldKind Field::kind() const { return static_cast<FieldKind>(target.index() % kinds); }

bool Field::optional() const { return target.index() >= kinds; }

std::string_view Field::group() const {
  const size_t dot = path.rfind('.');
  return dot == std::string::npos ? std::string_view() : std::string_view(path).substr(0, dot);
}

std::string_view Field::name() const {
  const size_t dot = path.rfind('.');
  return dot == std::string::npos ? std::string_view(path) : std::string_view(path).substr(dot + 1);
}

std::optional<Value> Field::get() const { return std::visit(Read{}, target); }

std::optional<Value> Field::checked(const std::optional<Value>& value) const {
  if (!value) {
    check(optional(), ErrorKind::config, path, ": must have a value: expected ",
          kind_names[static_cast<size_t>(kind())]);
    return value;
  }
  if (!is_list(kind())) {
    const std::optional<Scalar> scalar = narrowed(*value);
    check(scalar, ErrorKind::config, path, ": wrong type: expected ",
          kind_names[static_cast<size_t>(kind())], ", got a list: ", text_of(*value));
    return widened(checked_scalar(*this, *scalar));
  }
  const auto* list = std::get_if<std::vector<Scalar>>(&*value);
  check(list != nullptr, ErrorKind::config, path, ": wrong type: expected ",
        kind_names[static_cast<size_t>(kind())], ", got ", type_of(*value), ": ", text_of(*value));
  std::vector<Scalar> items;
  for (const Scalar& item : *list) {
    items.push_back(checked_scalar(*this, item));
  }
  return items;
}

void Field::set(const std::optional<Value>& value) const {
  std::visit(Write{checked(value)}, target);
}

void Fields::add(Field field) {
  check(find(field.path) == nullptr && find_group(field.path) == nullptr, ErrorKind::internal,
        field.path, ": described twice");
  fields_.push_back(std::move(field));
}

std::string Fields::enter(std::string_view name, std::string_view help) {
  const std::string path = prefix_ + std::string(name);
  check(find(path) == nullptr && find_group(path) == nullptr, ErrorKind::internal, path,
        ": described twice");
  groups_.push_back({path, std::string(help)});
  return std::exchange(prefix_, path + ".");
}

const Field* Fields::find(std::string_view path) const {
  const auto at = std::find_if(fields_.begin(), fields_.end(),
                               [&](const Field& field) { return field.path == path; });
  return at == fields_.end() ? nullptr : &*at;
}

const FieldGroup* Fields::find_group(std::string_view path) const {
  const auto at = std::find_if(groups_.begin(), groups_.end(),
                               [&](const FieldGroup& group) { return group.path == path; });
  return at == groups_.end() ? nullptr : &*at;
}

std::string Fields::nearest(std::string_view path) const {
  std::vector<std::string> paths;
  for (const Field& field : fields_) {
    paths.push_back(field.path);
  }
  for (const FieldGroup& group : groups_) {
    paths.push_back(group.path);
  }
  return nearest_path(path, paths);
}

}  // namespace ingot
