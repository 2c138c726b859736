#include "ingot/base/setting.h"

#include <utility>
#include <vector>

#include "ingot/base/config_toml.h"
#include "ingot/base/error.h"

namespace ingot {
namespace {

const Field& field_for(const Fields& fields, const Setting& setting) {
  const Field* field = fields.find(setting.path);
  if (field == nullptr) {
    check(fields.find_group(setting.path) == nullptr, ErrorKind::config, setting.origin, ": ",
          setting.path, ": is a group of keys, not one: got ", text_of(setting.value), "; write ",
          setting.path, ".KEY = VALUE");
    throw Error(ErrorKind::config,
                concat(setting.origin, ": ", setting.path, ": no such key; the nearest is ",
                       fields.nearest(setting.path)));
  }
  return *field;
}

void check_group(const Fields& fields, const Setting& setting) {
  if (fields.find(setting.path) != nullptr) {
    throw Error(ErrorKind::config,
                concat(setting.origin, ": ", setting.path, ": is a single key, not a group; write ",
                       setting.path, " = VALUE"));
  }
  check(fields.find_group(setting.path) != nullptr, ErrorKind::config, setting.origin, ": ",
        setting.path, ": no such group; the nearest is ", fields.nearest(setting.path));
}

std::optional<Value> checked(const Field& field, const Setting& setting) {
  try {
    return field.checked(setting.value);
  } catch (const Error& error) {
    throw Error(error.kind(), concat(setting.origin, ": ", error.what()), error.where());
  }
}

std::vector<Scalar> split_by_comma(std::string_view text) {
  std::vector<Scalar> items;
  while (true) {
    const size_t comma = text.find(',');
    items.emplace_back(std::string(text.substr(0, comma)));
    if (comma == std::string_view::npos) {
      return items;
    }
    text.remove_prefix(comma + 1);
  }
}

// What the user most plausibly meant by `text`, given the kind of the field.
Value value_from_command_line(FieldKind kind, std::string_view text) {
  const std::optional<Value> spelled = toml_value(text);
  if (kind == FieldKind::text) {
    const bool is_quoted = spelled && std::holds_alternative<std::string>(*spelled);
    return is_quoted ? *spelled : Value(std::string(text));
  }
  if (kind >= FieldKind::integers &&
      !(spelled && std::holds_alternative<std::vector<Scalar>>(*spelled))) {
    const std::optional<Value> bracketed = toml_value(concat("[", text, "]"));
    return kind == FieldKind::texts || !bracketed ? Value(split_by_comma(text)) : *bracketed;
  }
  return spelled ? *spelled : Value(std::string(text));
}

}  // namespace

void apply_settings(const Fields& fields, std::span<const Setting> settings) {
  std::vector<std::pair<const Field*, std::optional<Value>>> changes;
  for (const Setting& setting : settings) {
    if (setting.is_group) {
      check_group(fields, setting);
      continue;
    }
    const Field& field = field_for(fields, setting);
    changes.emplace_back(&field, checked(field, setting));
  }
  for (const auto& [field, value] : changes) {
    field->set(value);
  }
}

Setting command_line_setting(const Fields& fields, std::string_view argument) {
  const size_t equals = argument.find('=');
  check(equals != std::string_view::npos, ErrorKind::config, "--set: no value: got ", argument,
        "; write --set ", argument, "=VALUE");
  Setting setting{std::string(argument.substr(0, equals)), std::nullopt, "--set"};
  const std::string_view text = argument.substr(equals + 1);
  if (fields.find_group(setting.path) != nullptr) {
    setting.value = std::string(text);
  }
  const Field& field = field_for(fields, setting);
  if (!(text.empty() && field.optional())) {
    setting.value = value_from_command_line(field.kind(), text);
  }
  return setting;
}

}  // namespace ingot
