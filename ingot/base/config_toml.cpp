#include "ingot/base/config_toml.h"

#include <toml++/toml.h>

#include <algorithm>

#include "ingot/base/error.h"
#include "ingot/base/files.h"

namespace ingot {
namespace {

struct Placed {
  toml::source_position at;
  Setting setting;
};

std::optional<Scalar> scalar_of(const toml::node& node) {
  if (const auto* boolean = node.as_boolean()) {
    return boolean->get();
  }
  if (const auto* integer = node.as_integer()) {
    return integer->get();
  }
  if (const auto* number = node.as_floating_point()) {
    return number->get();
  }
  if (const auto* text = node.as_string()) {
    return text->get();
  }
  return std::nullopt;
}

std::optional<Value> value_of(const toml::node& node) {
  if (const auto* array = node.as_array()) {
    std::vector<Scalar> items;
    for (const toml::node& item : *array) {
      const std::optional<Scalar> scalar = scalar_of(item);
      if (!scalar) {
        return std::nullopt;
      }
      items.push_back(*scalar);
    }
    return items;
  }
  if (const std::optional<Scalar> scalar = scalar_of(node)) {
    return std::visit([](const auto& x) { return Value(x); }, *scalar);
  }
  return std::nullopt;
}

void flatten(const toml::table& table, const std::string& prefix, const std::string& name,
             std::vector<Placed>& out) {
  for (const auto& [key, node] : table) {
    const std::string path = prefix + std::string(key.str());
    const toml::source_position at = key.source().begin;
    Setting setting{path, std::nullopt, concat(name, ":", at.line)};
    if (const auto* nested = node.as_table()) {
      if (!nested->empty()) {
        flatten(*nested, path + ".", name, out);
        continue;
      }
      setting.is_group = true;
    } else {
      setting.value = value_of(node);
      check(setting.value, ErrorKind::config, setting.origin, ": ", path,
            ": wrong type: expected a boolean, integer, number, text or a list of them, got ",
            node.is_array() ? "a list of other things" : "a date or time");
    }
    out.push_back({at, std::move(setting)});
  }
}

void write_comment(const Field& field, std::string& out) {
  out += "# " + field.help;
  if (field.range.bounded()) {
    out += (field.help.empty() ? "" : "; ") + field.range.text();
  }
  out += "\n";
}

void write_field(const Field& field, std::string& out) {
  write_comment(field, out);
  const std::optional<Value> value = field.get();
  const std::string name(field.name());
  out += value ? name + " = " + text_of(*value) + "\n" : "# " + name + " is not set\n";
}

}  // namespace

std::vector<Setting> toml_settings(std::string_view text, const std::string& name) {
  toml::table table;
  try {
    table = toml::parse(text);
  } catch (const toml::parse_error& error) {
    const toml::source_position at = error.source().begin;
    throw Error(ErrorKind::config, concat(name, ":", at.line, ":", at.column,
                                          ": not valid TOML: ", error.description()));
  }
  std::vector<Placed> placed;
  flatten(table, "", name, placed);
  std::stable_sort(placed.begin(), placed.end(), [](const Placed& a, const Placed& b) {
    return a.at.line != b.at.line ? a.at.line < b.at.line : a.at.column < b.at.column;
  });
  std::vector<Setting> settings;
  for (Placed& one : placed) {
    settings.push_back(std::move(one.setting));
  }
  return settings;
}

std::vector<Setting> toml_file_settings(const std::filesystem::path& path) {
  return toml_settings(read_file(path), path.string());
}

std::optional<Value> toml_value(std::string_view text) {
  try {
    const toml::table table = toml::parse("x = " + std::string(text));
    const toml::node* node = table.get("x");
    return table.size() == 1 ? value_of(*node) : std::nullopt;
  } catch (const toml::parse_error&) {
    return std::nullopt;
  }
}

std::string write_toml(const Fields& fields) {
  // TOML ends a table where the next begins, so a table's own keys come before its subtables.
  std::string out;
  for (const Field& field : fields.all()) {
    if (field.group().empty()) {
      write_field(field, out);
    }
  }
  for (const FieldGroup& group : fields.groups()) {
    out += concat(out.empty() ? "" : "\n", "# ", group.help, "\n[", group.path, "]\n");
    for (const Field& field : fields.all()) {
      if (field.group() == group.path) {
        write_field(field, out);
      }
    }
  }
  return out;
}

}  // namespace ingot
