#pragma once

#include <array>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "ingot/data/example.h"
#include "ingot/data/layout.h"
#include "ingot/data/row_reader.h"

namespace ingot {

enum class RowPolicy : uint8_t {
  error,  // the first row that cannot be used ends the reading
  drop,   // such rows are left out and counted
};

struct ReadOptions {
  RowOptions rows;
  std::string layout = "auto";  // or a name of Layout
  LayoutOptions roles;
  RowPolicy policy = RowPolicy::error;
};

// What became of the rows of a file.
struct RowCounts {
  int64_t rows = 0;  // read
  int64_t examples = 0;
  std::array<int64_t, row_faults> dropped{};
  std::array<std::string, row_faults> first;  // the message of the first of each

  int64_t all_dropped() const;
  void drop(const RowError& error);
  void add(const RowCounts& other);
  // What was added since `before`, an earlier state of these counts.
  RowCounts since(const RowCounts& before) const;
  std::string text()
      const;  // "3 dropped: 2 empty text (chats.jsonl:7: …), 1 not JSON (…)"; "" for none
};

// The examples of a file in their order, a block of rows at a time: read in turn, understood on all
// cores, in memory that does not grow with the file.
class ExampleReader {
 public:
  // Throws Error(io), Error(format) or Error(config) naming the file or the option.
  ExampleReader(const std::filesystem::path& path, const ReadOptions& options);

  // Replaces `examples` by those of the next block; false at the end. Throws the RowError of the
  // first bad row under RowPolicy::error.
  bool next(std::vector<Example>& examples);

  // Passes over the next `blocks` blocks, which were read before, without counting them.
  void skip(int64_t blocks);

  std::optional<Layout> layout() const { return layout_; }  // after the first block
  const RowReader& rows() const { return rows_; }
  const RowCounts& counts() const { return counts_; }
  std::string describe() const;  // "jsonl, gzip: messages"

 private:
  void find_layout(const std::vector<RawRow>& rows);

  ReadOptions options_;
  RowReader rows_;
  std::optional<Layout> layout_;
  RowCounts counts_;
};

// All examples of some files in memory, of one kind where `kind` is given: Error(config) names the
// file that holds others.
std::vector<Example> read_examples(const std::vector<std::string>& files,
                                   const ReadOptions& options,
                                   std::optional<ExampleKind> kind = std::nullopt,
                                   RowCounts* counts = nullptr);

}  // namespace ingot
