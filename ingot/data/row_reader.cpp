#include "ingot/data/row_reader.h"

#include <array>
#include <optional>
#include <utility>

#include "ingot/base/error.h"
#include "ingot/data/row_splitter.h"
#include "ingot/text/utf8.h"

namespace ingot {
namespace {

using jinja::Value;
using rows::Characters;

constexpr std::array<std::string_view, 4> names = {"text", "jsonl", "json", "csv"};

// What the options or the file's name say; nothing where the first character decides.
std::optional<RowFormat> named_format(const std::filesystem::path& path, const std::string& asked) {
  for (size_t i = 0; i < names.size(); ++i) {
    if (asked == names[i]) {
      return static_cast<RowFormat>(i);
    }
  }
  check(asked == "auto", ErrorKind::config, "format: there is no '", asked,
        "'; it is auto, text, jsonl, json or csv");
  std::filesystem::path inner = path.filename();
  if (inner.extension() == ".gz" || inner.extension() == ".zst") {
    inner = inner.stem();
  }
  const std::string extension = inner.extension().string();
  return extension == ".csv"                         ? std::optional(RowFormat::csv)
         : extension == ".txt" || extension == ".md" ? std::optional(RowFormat::text)
         : extension == ".jsonl"                     ? std::optional(RowFormat::jsonl)
                                                     : std::nullopt;
}

// Of a file whose first characters are these; blank ones are passed over.
RowFormat seen_format(Characters& in) {
  while (in.peek() == ' ' || in.peek() == '\t' || in.peek() == '\r' || in.peek() == '\n') {
    in.take();
  }
  return in.peek() == '[' ? RowFormat::json : in.peek() == '{' ? RowFormat::jsonl : RowFormat::text;
}

std::unique_ptr<rows::Splitter> splitter_of(RowFormat format, const RowOptions& options) {
  switch (format) {
    case RowFormat::text: return rows::text_splitter(options);
    case RowFormat::jsonl: return rows::line_splitter();
    case RowFormat::json: return rows::list_splitter();
    case RowFormat::csv: return rows::csv_splitter();
  }
  return nullptr;
}

}  // namespace

std::string_view name(RowFormat format) { return names[static_cast<size_t>(format)]; }

struct RowReader::State {
  State(std::filesystem::path file, RowOptions given)
      : path(std::move(file)), options(std::move(given)), in(path), columns(options.columns) {
    check(in.peek() != Characters::end, ErrorKind::format, path.string(),
          ": the file is empty; give a file with rows in it");
    const std::optional<RowFormat> named = named_format(path, options.format);
    format = named ? *named : seen_format(in);
    splitter = splitter_of(format, options);
    if (format == RowFormat::csv && columns.empty()) {
      columns = rows::csv_record(in).value_or(std::vector<std::string>());
    }
  }

  std::filesystem::path path;
  RowOptions options;
  Characters in;
  std::vector<std::string> columns;
  RowFormat format = RowFormat::text;
  std::unique_ptr<rows::Splitter> splitter;
};

RowReader::RowReader(std::filesystem::path path, RowOptions options)
    : state_(std::make_unique<State>(std::move(path), std::move(options))) {}
RowReader::~RowReader() = default;
RowReader::RowReader(RowReader&&) noexcept = default;
RowReader& RowReader::operator=(RowReader&&) noexcept = default;

RowFormat RowReader::format() const { return state_->format; }
const std::filesystem::path& RowReader::path() const { return state_->path; }
int64_t RowReader::position() const { return state_->in.source().position(); }

std::string RowReader::describe() const {
  const Compression packed = state_->in.source().compression();
  return std::string(name(state_->format)) +
         (packed == Compression::none ? "" : concat(", ", name(packed)));
}

bool RowReader::next(std::vector<RawRow>& rows, int64_t bytes) {
  rows.clear();
  int64_t held = 0;
  while (held < bytes) {
    auto row = state_->splitter->next(state_->in);
    if (!row) {
      break;
    }
    held += static_cast<int64_t>(row->text.size());
    for (const std::string& field : row->fields) {
      held += static_cast<int64_t>(field.size());
    }
    rows.push_back(std::move(*row));
  }
  return !rows.empty();
}

Value RowReader::value(const RawRow& row) const {
  const std::string place = concat(path().string(), ":", row.line);
  const auto valid = [&](const std::string& text) -> const std::string& {
    check_row(is_valid_utf8(text), RowFault::utf8, place, ": not valid UTF-8 at byte ",
              valid_utf8_prefix(text) + 1, " of the row; save the file as UTF-8");
    return text;
  };
  if (format() == RowFormat::jsonl || format() == RowFormat::json) {
    Value out = json_row(row.text, place);
    check_row(out.mapping() != nullptr, RowFault::layout, place,
              ": a row is no object: ", jinja::type_name(out),
              "; write {\"messages\": […]} or such");
    return out;
  }
  jinja::Mapping out;
  if (format() == RowFormat::text) {
    out.set("text", Value(valid(row.text)));
    return dict_of(std::move(out));
  }
  const std::vector<std::string>& columns = state_->columns;
  check_row(row.fields.size() == columns.size(), RowFault::layout, place, ": the row has ",
            row.fields.size(), " fields, the first line names ", columns.size(),
            "; put quotes around fields with commas");
  for (size_t i = 0; i < columns.size(); ++i) {
    out.set(Value(columns[i]), Value(valid(row.fields[i])));
  }
  return dict_of(std::move(out));
}

}  // namespace ingot
