#include "ingot/data/text_rows.h"

#include "ingot/base/error.h"
#include "ingot/base/files.h"
#include "ingot/base/json_library.h"

namespace ingot {
namespace {

std::string member(const nlohmann::json& row, const std::string& key, const std::string& where) {
  const auto at = row.find(key);
  check(at != row.end() && (at->is_string() || at->is_number_integer()), ErrorKind::format, where,
        ": ", key,
        ": must be a string or a whole number: ", at == row.end() ? "absent" : at->dump());
  return at->is_string() ? at->get<std::string>() : at->dump();
}

}  // namespace

std::vector<TextRow> read_text_rows(const std::filesystem::path& file, const std::string& text,
                                    const std::string& other) {
  const std::string all = read_file(file);
  std::vector<TextRow> out;
  int64_t line = 0;
  for (size_t begin = 0; begin < all.size();) {
    const size_t end = std::min(all.find('\n', begin), all.size());
    ++line;
    const std::string_view one(all.data() + begin, end - begin);
    begin = end + 1;
    if (one.find_first_not_of(" \t\r") == std::string_view::npos) {
      continue;
    }
    const std::string where = concat(file.string(), ":", line);
    const nlohmann::json row = nlohmann::json::parse(one, nullptr, false);
    check(row.is_object(), ErrorKind::format, where, ": not a JSON object");
    out.push_back({member(row, text, where), member(row, other, where)});
  }
  check(!out.empty(), ErrorKind::format, file.string(), ": holds no rows");
  return out;
}

}  // namespace ingot
