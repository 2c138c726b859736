#include "ingot/base/config_help.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

namespace ingot {
namespace {

using Row = std::array<std::string, 5>;  // path, kind, default, range, help

std::string_view kind_name(FieldKind kind) {
  constexpr std::array<std::string_view, 7> names = {"boolean",  "integer", "number", "text",
                                                     "integers", "numbers", "texts"};
  return names[static_cast<size_t>(kind)];
}

Row row_of(const Field& field) {
  return {field.path, std::string(kind_name(field.kind())), text_of(field.get()),
          field.range.text(), field.help};
}

std::string line_of(const Row& row, const std::array<size_t, 5>& widths) {
  std::string line = " ";
  for (size_t i = 0; i < row.size(); ++i) {
    line += " " + row[i] + std::string(widths[i] - row[i].size() + 1, ' ');
  }
  line.erase(line.find_last_not_of(' ') + 1);
  return line + "\n";
}

}  // namespace

std::string help_text(const Fields& fields) {
  std::array<size_t, 5> widths{};
  for (const Field& field : fields.all()) {
    const Row row = row_of(field);
    for (size_t i = 0; i < row.size(); ++i) {
      widths[i] = std::max(widths[i], row[i].size());
    }
  }
  std::string out;
  const auto write_group = [&](std::string_view path) {
    for (const Field& field : fields.all()) {
      if (field.group() == path) {
        out += line_of(row_of(field), widths);
      }
    }
  };
  write_group("");
  for (const FieldGroup& group : fields.groups()) {
    out += "\n" + group.path + ": " + group.help + "\n";
    write_group(group.path);
  }
  return out;
}

}  // namespace ingot
