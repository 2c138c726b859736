#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "ingot/data/dataset.h"
#include "ingot/data/packing.h"
#include "ingot/data/sample.h"
#include "ingot/data/token_store.h"

namespace ingot {

// What becomes of a row with more than T inputs.
enum class LongRows : uint8_t {
  drop,      // it is left out
  truncate,  // its first T inputs stay; left out where none of them is learnt from
  split,     // it becomes pieces of T inputs, each with the token before as context
  raise,     // an error that names file and line
};
std::string_view name(LongRows policy);
LongRows long_rows_named(std::string_view name);  // throws Error(config)

enum class Packing : uint8_t { none, best_fit };

struct TokenRowsOptions {
  int64_t sequence = 0;  // T
  LongRows long_rows = LongRows::truncate;
  Packing packing = Packing::best_fit;
};

// What a run trains on of a store, for its log and its check on resume.
struct TokenRowsReport {
  int64_t rows = 0;     // token rows that are used
  int64_t inputs = 0;   // tokens that go through the model in an epoch
  int64_t targets = 0;  // learnt
  int64_t samples = 0;  // packed rows
  int64_t truncated = 0, split = 0, dropped = 0;
  std::string first_long;  // place and length of the first row that is too long
  double share() const {
    return inputs > 0 ? static_cast<double>(targets) / static_cast<double>(inputs) : 0;
  }
  double filled(int64_t sequence) const;  // of the columns
};

// Rows of a store as samples of at most T inputs. The same in every epoch: sample i is i modulo
// size(). Wrap it in Shuffled for training.
class TokenRows : public Dataset<Sample> {
 public:
  // `rows`: which rows of the store. Throws Error(format) for LongRows::raise, or where nothing is
  // left to learn.
  TokenRows(std::shared_ptr<const TokenStore> store, const std::vector<int64_t>& rows,
            const TokenRowsOptions& options);

  int64_t size() const override { return static_cast<int64_t>(bins_.size()); }
  Sample get(int64_t i) const override;
  const TokenRowsReport& report() const { return report_; }

 private:
  std::shared_ptr<const TokenStore> store_;
  std::vector<Bin> bins_;  // of rows of the store, in inputs
  TokenRowsReport report_;
};

// Which rows of a store are trained on and which are held out: a row is held out where the hash of
// its content, mixed with `seed`, falls into the last `fraction`. Equal rows fall to one side. Of
// the source files from `first_held_out` on all rows are held out.
struct RowSplit {
  std::vector<int64_t> training, held_out;
};
RowSplit split_rows(const TokenStore& store, double fraction, uint64_t seed = 0,
                    uint32_t first_held_out = UINT32_MAX);
bool is_held_out(uint64_t content, double fraction, uint64_t seed = 0);

}  // namespace ingot
