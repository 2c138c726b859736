#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "ingot/base/range.h"
#include "ingot/base/value.h"

namespace ingot {

// Configuration described once. A config struct lists its fields, one line each:
//
//   struct AdamWConfig {
//     double beta1 = 0.9;
//     template <class V> void describe(V& v) {
//       v("beta1", beta1, half_open(0, 1), "decay of the first moment");
//     }
//   };
//   struct Recipe {
//     int64_t steps = 1000;
//     AdamWConfig optim;
//     template <class V> void describe(V& v) {
//       v("steps", steps, at_least(1), "optimizer steps");
//       v.group("optim", optim, "the optimizer");
//     }
//   };
//
// The list drives reading (config_toml.h, config_json.h), --set and the checks (setting.h),
// writing,
// --help (config_help.h) and comparing (config_diff.h). All of them work on the flat list `Fields`,
// so a config struct costs one template instantiation. A default is the member's initial value.

// Where a field lives; also the list of types that a field may have.
using FieldTarget =
    std::variant<bool*, int64_t*, double*, std::string*, std::vector<int64_t>*,
                 std::vector<double>*, std::vector<std::string>*, std::optional<bool>*,
                 std::optional<int64_t>*, std::optional<double>*, std::optional<std::string>*,
                 std::optional<std::vector<int64_t>>*, std::optional<std::vector<double>>*,
                 std::optional<std::vector<std::string>>*>;

enum class FieldKind : uint8_t { boolean, integer, number, text, integers, numbers, texts };

struct Field {
  std::string path;  // "optim.beta1"
  FieldTarget target;
  Range range;
  std::string help;

  FieldKind kind() const;
  bool optional() const;           // may be absent
  std::string_view group() const;  // "optim"; "" at the top
  std::string_view name() const;   // "beta1"

  std::optional<Value> get() const;  // absent only for an optional field that is not set
  // `value` as this field would hold it: an integer becomes a number where the field is one.
  // Throws Error(config) on a wrong type or a value out of range; the message starts with the path.
  std::optional<Value> checked(const std::optional<Value>& value) const;
  void set(const std::optional<Value>& value) const;  // checked() and stored
};

struct FieldGroup {
  std::string path;
  std::string help;
};

// The visitor: the fields of a struct and of the structs in it, in the order of description. It
// points into the struct, which must outlive it.
class Fields {
 public:
  template <class T>
  void operator()(std::string_view name, T& field, Range range, std::string_view help) {
    add({prefix_ + std::string(name), FieldTarget(&field), std::move(range), std::string(help)});
  }
  template <class T>
  void operator()(std::string_view name, T& field, std::string_view help) {
    (*this)(name, field, any(), help);
  }
  template <class Config>
  void group(std::string_view name, Config& nested, std::string_view help) {
    const std::string outer = enter(name, help);
    nested.describe(*this);
    prefix_ = outer;
  }

  const std::vector<Field>& all() const { return fields_; }
  const std::vector<FieldGroup>& groups() const { return groups_; }
  const Field* find(std::string_view path) const;  // null when there is none
  const FieldGroup* find_group(std::string_view path) const;
  // The path of the field or group that a writer of `path` most likely meant.
  std::string nearest(std::string_view path) const;

 private:
  void add(Field field);  // throws Error(internal) on a path described twice
  std::string enter(std::string_view name, std::string_view help);

  std::string prefix_;
  std::vector<Field> fields_;
  std::vector<FieldGroup> groups_;
};

template <class Config>
Fields fields_of(Config& config) {
  Fields fields;
  config.describe(fields);
  return fields;
}

}  // namespace ingot
