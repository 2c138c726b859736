#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ingot/data/row_fault.h"
#include "ingot/text/jinja_value.h"

namespace ingot {

// What kind of file rows come from.
enum class RowFormat : uint8_t {
  text,   // documents, apart by lines that are the separator
  jsonl,  // a JSON object a line
  json,   // one list of JSON objects
  csv,    // RFC 4180, the first line names the fields
};
std::string_view name(RowFormat format);

struct RowOptions {
  std::string format = "auto";              // or text, jsonl, json, csv
  std::string separator = "<|endoftext|>";  // a line that ends a document of a text file
  std::vector<std::string> columns;         // of a CSV file without a line of names
  int64_t largest_text = int64_t{1} << 20;  // a longer document is cut at the end of a line
};

// One row as it stands in its file, not yet parsed.
struct RawRow {
  int64_t line = 0;                 // where it begins, counted from 1
  std::string text;                 // of text: the document; of JSON: the object; of CSV: nothing
  std::vector<std::string> fields;  // of CSV
};

// The rows of a file in their order, in constant memory (one row at least). Compressed files are
// unpacked, a byte order mark and carriage returns at line ends are left out, blank lines are
// passed over.
class RowReader {
 public:
  // Throws Error(io) or Error(format) naming the file, also for UTF-16 and for an empty file.
  RowReader(std::filesystem::path path, RowOptions options = {});
  ~RowReader();
  RowReader(RowReader&&) noexcept;
  RowReader& operator=(RowReader&&) noexcept;

  RowFormat format() const;
  std::string describe() const;  // "JSONL, gzip"
  const std::filesystem::path& path() const;
  int64_t position() const;  // bytes of the file that were read

  // Replaces `rows` by the next ones, until they hold `bytes` bytes; false where there are none.
  // What breaks the whole file, such as a list that does not end, is an Error(format).
  bool next(std::vector<RawRow>& rows, int64_t bytes = int64_t{4} << 20);

  // The row as a dict: {"text": …} for text, the object for JSON, name → text for CSV. Throws
  // RowError naming file and line. Safe from several threads at once.
  jinja::Value value(const RawRow& row) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// The value that a JSON text spells, as jinja::parse_json_value gives it, and several times faster.
// Throws RowError(json) or RowError(utf8) that begins with `name`, which holds the line.
jinja::Value json_row(std::string_view text, const std::string& name);

}  // namespace ingot
