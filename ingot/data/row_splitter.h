#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ingot/data/byte_source.h"
#include "ingot/data/row_reader.h"

// How the formats of row_reader.h find where a row ends.
namespace ingot::rows {

// The unpacked characters of a file one after the other, without a byte order mark, and the number
// of the line they are in.
class Characters {
 public:
  // Throws Error(format) for UTF-16 and UTF-32.
  Characters(const std::filesystem::path& path);

  static constexpr int end = -1;
  int peek() { return at_ < size_ || refill() ? static_cast<unsigned char>(held_[at_]) : end; }
  int take() {
    const int letter = peek();
    if (letter != end) {
      ++at_;
      line_ += letter == '\n' ? 1 : 0;
    }
    return letter;
  }
  // Appends the rest of the line without its end; false where there is no more line.
  bool take_line(std::string& line);

  int64_t line() const { return line_; }
  const ByteSource& source() const { return *source_; }
  const std::string& path() const { return path_; }

 private:
  bool refill();

  std::string path_;
  std::unique_ptr<ByteSource> source_;
  std::vector<char> held_;
  size_t at_ = 0, size_ = 0;
  int64_t line_ = 1;
};

class Splitter {
 public:
  virtual ~Splitter() = default;
  virtual std::optional<RawRow> next(Characters& in) = 0;
};

std::unique_ptr<Splitter> text_splitter(const RowOptions& options);
std::unique_ptr<Splitter> line_splitter();  // JSONL
std::unique_ptr<Splitter> list_splitter();  // JSON
std::unique_ptr<Splitter> csv_splitter();

// One record of a CSV file, with quotes taken off: fields; nothing at the end of the file.
std::optional<std::vector<std::string>> csv_record(Characters& in);

}  // namespace ingot::rows
