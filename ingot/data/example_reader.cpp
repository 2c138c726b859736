#include "ingot/data/example_reader.h"

#include <numeric>
#include <utility>
#include <variant>

#include "ingot/data/in_order.h"

namespace ingot {

int64_t RowCounts::all_dropped() const {
  return std::accumulate(dropped.begin(), dropped.end(), int64_t{0});
}

void RowCounts::drop(const RowError& error) {
  const auto fault = static_cast<size_t>(error.fault());
  if (dropped[fault]++ == 0) {
    first[fault] = error.what();
  }
}

void RowCounts::add(const RowCounts& other) {
  rows += other.rows;
  examples += other.examples;
  for (size_t i = 0; i < row_faults; ++i) {
    first[i] = dropped[i] > 0 ? first[i] : other.first[i];
    dropped[i] += other.dropped[i];
  }
}

RowCounts RowCounts::since(const RowCounts& before) const {
  RowCounts out = *this;
  out.rows -= before.rows;
  out.examples -= before.examples;
  for (size_t i = 0; i < row_faults; ++i) {
    out.dropped[i] -= before.dropped[i];
  }
  return out;
}

std::string RowCounts::text() const {
  std::string out;
  for (size_t i = 0; i < row_faults; ++i) {
    if (dropped[i] > 0) {
      out += concat(out.empty() ? "" : ", ", dropped[i], " ", name(static_cast<RowFault>(i)), " (",
                    first[i], ")");
    }
  }
  return out.empty() ? out : concat(all_dropped(), " dropped: ", out);
}

ExampleReader::ExampleReader(const std::filesystem::path& path, const ReadOptions& options)
    : options_(options), rows_(path, options.rows) {
  if (options_.layout != "auto") {
    layout_ = layout_named(options_.layout);
    check(layout_.has_value(), ErrorKind::config, "layout: there is no '", options_.layout,
          "'; it is auto, text, completion, alpaca, sharegpt, messages, tree, preference, label or "
          "ranked");
  }
}

void ExampleReader::find_layout(const std::vector<RawRow>& rows) {
  for (size_t i = 0; i < rows.size() && !layout_; ++i) {
    try {
      layout_ = layout_of(*rows_.value(rows[i]).mapping());
      check(layout_ || options_.policy == RowPolicy::drop, ErrorKind::format, rows_.path().string(),
            ":", rows[i].line,
            ": no known layout: the row has none of the keys text, prompt and completion, "
            "instruction, conversations, messages, chosen and rejected; rename its keys, or see "
            "docs/data.md");
    } catch (const RowError&) {
      if (options_.policy == RowPolicy::error) {
        throw;
      }
    }
  }
}

bool ExampleReader::next(std::vector<Example>& examples) {
  examples.clear();
  std::vector<RawRow> rows;
  if (!rows_.next(rows)) {
    return false;
  }
  if (!layout_) {
    find_layout(rows);
  }
  using Found = std::variant<std::vector<Example>, RowError>;
  const std::string file = rows_.path().string();
  in_order<Found>(
      rows.size(),
      [&](size_t i) -> Found {
        const RowPlace place{file, rows[i].line};
        try {
          const jinja::Value row = rows_.value(rows[i]);
          check_row(layout_.has_value(), RowFault::layout, place.text(),
                    ": the row is of no known layout");
          return examples_of(row, *layout_, place, options_.roles);
        } catch (const RowError& error) {
          return error;
        }
      },
      [&](Found found) {
        ++counts_.rows;
        if (const auto* error = std::get_if<RowError>(&found)) {
          if (options_.policy == RowPolicy::error) {
            throw *error;
          }
          counts_.drop(*error);
          return;
        }
        for (Example& example : std::get<std::vector<Example>>(found)) {
          ++counts_.examples;
          examples.push_back(std::move(example));
        }
      });
  return true;
}

void ExampleReader::skip(int64_t blocks) {
  std::vector<RawRow> rows;
  for (int64_t i = 0; i < blocks && rows_.next(rows); ++i) {
    if (!layout_) {
      find_layout(rows);
    }
  }
}

std::string ExampleReader::describe() const {
  return concat(rows_.describe(), ": ", layout_ ? name(*layout_) : "no known layout");
}

std::vector<Example> read_examples(const std::vector<std::string>& files,
                                   const ReadOptions& options, std::optional<ExampleKind> kind,
                                   RowCounts* counts) {
  std::vector<Example> out;
  for (const std::string& file : files) {
    ExampleReader reader(file, options);
    std::vector<Example> block;
    while (reader.next(block)) {
      for (Example& example : block) {
        check(!kind || example.kind == *kind, ErrorKind::config, example.place.text(), ": holds a ",
              name(example.kind), ", needed is a ", kind ? name(*kind) : "",
              "; give a file of another layout");
        out.push_back(std::move(example));
      }
    }
    if (counts != nullptr) {
      counts->add(reader.counts());
    }
  }
  return out;
}

}  // namespace ingot
