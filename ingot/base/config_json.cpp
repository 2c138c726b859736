#include "ingot/base/config_json.h"

#include <cmath>

#include "ingot/base/error.h"
#include "ingot/base/json_library.h"

namespace ingot {
namespace {

using nlohmann::json;

std::optional<Scalar> scalar_of(const json& item) {
  switch (item.type()) {
    case json::value_t::boolean: return item.get<bool>();
    case json::value_t::number_integer: return item.get<int64_t>();
    case json::value_t::number_unsigned:
      return item.get<uint64_t>() > INT64_MAX ? Scalar(item.get<double>())
                                              : Scalar(item.get<int64_t>());
    case json::value_t::number_float: return item.get<double>();
    case json::value_t::string: return item.get<std::string>();
    default: return std::nullopt;
  }
}

std::optional<Value> value_of(const json& item) {
  if (!item.is_array()) {
    const std::optional<Scalar> scalar = scalar_of(item);
    return scalar ? std::visit([](const auto& x) { return std::optional<Value>(x); }, *scalar)
                  : std::nullopt;
  }
  std::vector<Scalar> items;
  for (const json& part : item) {
    const std::optional<Scalar> scalar = scalar_of(part);
    if (!scalar) {
      return std::nullopt;
    }
    items.push_back(*scalar);
  }
  return items;
}

void flatten(const json& object, const std::string& prefix, const std::string& name,
             std::vector<Setting>& out) {
  for (const auto& [key, item] : object.items()) {
    Setting setting{prefix + key, std::nullopt, name};
    if (item.is_object() && !item.empty()) {
      flatten(item, setting.path + ".", name, out);
      continue;
    }
    setting.is_group = item.is_object();
    if (!setting.is_group && !item.is_null()) {
      setting.value = value_of(item);
      check(setting.value, ErrorKind::config, name, ": ", setting.path,
            ": wrong type: expected a boolean, integer, number, text or a list of them, got a list "
            "of other things");
    }
    out.push_back(std::move(setting));
  }
}

json json_of(const Scalar& value) {
  if (const double* x = std::get_if<double>(&value); x != nullptr && std::isinf(*x)) {
    return *x > 0 ? "inf" : "-inf";
  }
  return std::visit([](const auto& x) { return json(x); }, value);
}

json json_of(const std::optional<Value>& value) {
  if (!value) {
    return nullptr;
  }
  return std::visit(
      [](const auto& x) {
        if constexpr (std::is_constructible_v<Scalar, decltype(x)>) {
          return json_of(Scalar(x));
        } else {
          json list = json::array();
          for (const Scalar& item : x) {
            list.push_back(json_of(item));
          }
          return list;
        }
      },
      *value);
}

json& object_at(json& root, std::string_view path) {
  if (path.empty()) {
    return root;
  }
  const size_t dot = path.find('.');
  json& next = root[std::string(path.substr(0, dot))];
  return dot == std::string_view::npos ? next : object_at(next, path.substr(dot + 1));
}

}  // namespace

std::vector<Setting> json_settings(const json& object, const std::string& name) {
  check(object.is_object(), ErrorKind::config, name, ": not a JSON object: got ",
        object.type_name());
  std::vector<Setting> settings;
  flatten(object, "", name, settings);
  return settings;
}

json write_json(const Fields& fields) {
  json root = json::object();
  for (const FieldGroup& group : fields.groups()) {
    object_at(root, group.path) = json::object();
  }
  for (const Field& field : fields.all()) {
    object_at(root, field.path) = json_of(field.get());
  }
  return root;
}

}  // namespace ingot
