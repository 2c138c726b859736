#include "ingot/data/row_splitter.h"

#include <algorithm>
#include <cstring>

namespace ingot::rows {
namespace {

bool is_blank(std::string_view text) {
  return text.find_first_not_of(" \t\r\n") == std::string_view::npos;
}

class Texts : public Splitter {
 public:
  explicit Texts(const RowOptions& options) : options_(options) {}

  std::optional<RawRow> next(Characters& in) override {
    RawRow row;
    row.line = in.line();
    std::string line;
    while (line.clear(), in.take_line(line)) {
      if (!options_.separator.empty() && line == options_.separator) {
        if (!is_blank(row.text)) {
          return row;
        }
        row = {in.line(), "", {}};
        continue;
      }
      row.text += line;
      row.text += '\n';
      if (static_cast<int64_t>(row.text.size()) >= options_.largest_text) {
        return row;
      }
    }
    return is_blank(row.text) ? std::nullopt : std::optional(std::move(row));
  }

 private:
  RowOptions options_;
};

class Lines : public Splitter {
 public:
  std::optional<RawRow> next(Characters& in) override {
    RawRow row;
    do {
      row = {in.line(), "", {}};
      if (!in.take_line(row.text)) {
        return std::nullopt;
      }
    } while (is_blank(row.text));
    return row;
  }
};

// The elements of a list: told apart by brackets and quotes alone, each is parsed by itself later.
class Elements : public Splitter {
 public:
  std::optional<RawRow> next(Characters& in) override {
    if (!open_) {
      check(in.take() == '[', ErrorKind::format, in.path(), ": the list does not begin with '['");
      open_ = true;
    }
    skip_blank(in);
    if (done_ || in.peek() == ']') {
      check(done_ || first_, ErrorKind::format, in.path(), ":", in.line(),
            ": a comma stands before the end of the list; remove it");
      finish(in);
      return std::nullopt;
    }
    RawRow row{in.line(), "", {}};
    take_element(in, row.text);
    first_ = false;
    skip_blank(in);
    check(in.peek() == ',' || in.peek() == ']', ErrorKind::format, in.path(), ":", in.line(),
          in.peek() == Characters::end
              ? ": the file ends within its list; it is cut off: copy it again"
              : ": neither ',' nor ']' follows a row of the list; put a comma between rows");
    if (in.peek() == ',') {
      in.take();
    } else {
      done_ = true;
    }
    return row;
  }

 private:
  static void skip_blank(Characters& in) {
    while (in.peek() == ' ' || in.peek() == '\t' || in.peek() == '\r' || in.peek() == '\n') {
      in.take();
    }
  }

  static void take_element(Characters& in, std::string& text) {
    int depth = 0;
    bool quoted = false;
    for (;;) {
      const int letter = in.peek();
      check(letter != Characters::end, ErrorKind::format, in.path(), ":", in.line(),
            ": the file ends within its list; it is cut off: copy it again");
      if (!quoted && depth == 0 && (letter == ',' || letter == ']')) {
        return;
      }
      in.take();
      text += static_cast<char>(letter);
      if (quoted) {
        if (letter == '\\' && in.peek() != Characters::end) {
          text += static_cast<char>(in.take());
        }
        quoted = letter != '"';
        continue;
      }
      quoted = letter == '"';
      depth += letter == '{' || letter == '[' ? 1 : letter == '}' || letter == ']' ? -1 : 0;
      if (depth == 0 && (letter == '}' || letter == ']')) {
        return;
      }
    }
  }

  static void finish(Characters& in) {
    in.take();
    skip_blank(in);
    check(in.peek() == Characters::end, ErrorKind::format, in.path(), ":", in.line(),
          ": something follows the list; a file holds one list, or an object a line");
  }

  bool open_ = false, first_ = true, done_ = false;
};

class Records : public Splitter {
 public:
  std::optional<RawRow> next(Characters& in) override {
    for (;;) {
      RawRow row{in.line(), "", {}};
      auto fields = csv_record(in);
      if (!fields) {
        return std::nullopt;
      }
      if (fields->size() > 1 || !is_blank(fields->front())) {
        row.fields = std::move(*fields);
        return row;
      }
    }
  }
};

}  // namespace

Characters::Characters(const std::filesystem::path& path)
    : path_(path.string()), source_(open_bytes(path)), held_(size_t{256} << 10) {
  refill();
  const std::string_view start(held_.data(), std::min<size_t>(size_, 3));
  check(!start.starts_with("\xff\xfe") && !start.starts_with("\xfe\xff"), ErrorKind::format, path_,
        ": the file is UTF-16; save it as UTF-8");
  at_ = start == "\xef\xbb\xbf" ? 3 : 0;
}

bool Characters::refill() {
  at_ = 0;
  size_ = source_->read(held_);
  return size_ > 0;
}

bool Characters::take_line(std::string& line) {
  if (peek() == end) {
    return false;
  }
  while (at_ < size_ || refill()) {
    const char* begin = held_.data() + at_;
    const void* found = std::memchr(begin, '\n', size_ - at_);
    const size_t count = found == nullptr
                             ? size_ - at_
                             : static_cast<size_t>(static_cast<const char*>(found) - begin);
    line.append(begin, count);
    at_ += count;
    if (found != nullptr) {
      ++at_;
      ++line_;
      break;
    }
  }
  if (line.ends_with('\r')) {
    line.pop_back();
  }
  return true;
}

std::optional<std::vector<std::string>> csv_record(Characters& in) {
  if (in.peek() == Characters::end) {
    return std::nullopt;
  }
  std::vector<std::string> fields(1);
  const int64_t line = in.line();
  bool quoted = false;
  for (int letter = in.take(); letter != Characters::end || quoted; letter = in.take()) {
    check(letter != Characters::end, ErrorKind::format, in.path(), ":", line,
          ": a quoted field does not end; close it with '\"', and write quotes in it as '\"\"'");
    std::string& field = fields.back();
    if (quoted) {
      if (letter != '"') {
        field += static_cast<char>(letter);
      } else if (in.peek() == '"') {
        field += static_cast<char>(in.take());
      } else {
        quoted = false;
      }
    } else if (letter == '"' && field.empty()) {
      quoted = true;
    } else if (letter == ',') {
      fields.emplace_back();
    } else if (letter == '\n') {
      break;
    } else if (letter != '\r' || in.peek() != '\n') {
      field += static_cast<char>(letter);
    }
  }
  return fields;
}

std::unique_ptr<Splitter> text_splitter(const RowOptions& options) {
  return std::make_unique<Texts>(options);
}
std::unique_ptr<Splitter> line_splitter() { return std::make_unique<Lines>(); }
std::unique_ptr<Splitter> list_splitter() { return std::make_unique<Elements>(); }
std::unique_ptr<Splitter> csv_splitter() { return std::make_unique<Records>(); }

}  // namespace ingot::rows
