#include "ingot/data/token_rows.h"

#include <algorithm>
#include <array>

#include "ingot/base/error.h"
#include "ingot/base/philox.h"

namespace ingot {
namespace {

constexpr std::array<std::string_view, 4> policies = {"drop", "truncate", "split", "raise"};

}  // namespace

std::string_view name(LongRows policy) { return policies[static_cast<size_t>(policy)]; }

LongRows long_rows_named(std::string_view word) {
  const auto found = std::find(policies.begin(), policies.end(), word);
  check(found != policies.end(), ErrorKind::config, "long: there is no '", word,
        "'; it is drop, truncate, split or raise");
  return static_cast<LongRows>(found - policies.begin());
}

double TokenRowsReport::filled(int64_t sequence) const {
  return samples > 0 ? static_cast<double>(inputs) / static_cast<double>(samples * sequence) : 0;
}

TokenRows::TokenRows(std::shared_ptr<const TokenStore> store, const std::vector<int64_t>& rows,
                     const TokenRowsOptions& options)
    : store_(std::move(store)) {
  const int64_t T = options.sequence;
  check(T >= 1, ErrorKind::argument, "data: the sequence length must be at least 1: got ", T);
  std::vector<int64_t> used;
  std::vector<int64_t> lengths;  // in inputs
  for (const int64_t row : rows) {
    int64_t inputs = store_->length(row) - 1;
    if (inputs > T) {
      if (report_.first_long.empty()) {
        report_.first_long = concat(store_->place_text(row), ": ", inputs + 1, " tokens");
      }
      check(options.long_rows != LongRows::raise, ErrorKind::format, report_.first_long,
            ", more than train.sequence + 1 = ", T + 1,
            "; raise train.sequence, or set data.long to truncate, split or drop");
      if (options.long_rows == LongRows::truncate && store_->learnt(row, 1, T + 1) > 0) {
        ++report_.truncated;
        inputs = T;
      } else if (options.long_rows == LongRows::split) {
        ++report_.split;
      } else {
        ++report_.dropped;
        continue;
      }
    }
    if (inputs > 0) {
      used.push_back(row);
      lengths.push_back(inputs);
    }
  }
  std::vector<Bin> bins;
  if (options.packing == Packing::best_fit) {
    bins = best_fit_packing(lengths, T);
  } else {
    for (size_t i = 0; i < used.size(); ++i) {
      for (int64_t start = 0; start < lengths[i]; start += T) {
        bins.push_back({{static_cast<int64_t>(i), start, std::min(T, lengths[i] - start)}});
      }
    }
  }
  report_.rows = static_cast<int64_t>(used.size());
  for (Bin& bin : bins) {
    for (Piece& piece : bin) {
      piece.document = used[static_cast<size_t>(piece.document)];
    }
    // A piece of a split row may hold nothing that is learnt.
    std::erase_if(bin, [&](const Piece& piece) {
      const int64_t learnt =
          store_->learnt(piece.document, piece.start + 1, piece.start + piece.length + 1);
      report_.targets += learnt;
      report_.inputs += learnt > 0 ? piece.length : 0;
      return learnt == 0;
    });
    if (!bin.empty()) {
      bins_.push_back(std::move(bin));
    }
  }
  report_.samples = size();
  check(!bins_.empty(), ErrorKind::format, store_->manifest().sources.front().path,
        ": no row is left to train on: ", rows.size(), " rows, ", report_.dropped,
        " too long for train.sequence = ", T,
        "; raise train.sequence, or set data.long to truncate or split");
}

Sample TokenRows::get(int64_t i) const {
  Sample out;
  for (const Piece& piece : bins_[static_cast<size_t>(i % size())]) {
    out.documents.push_back(
        store_->read(piece.document, piece.start, piece.start + piece.length + 1));
  }
  return out;
}

bool is_held_out(uint64_t content, double fraction, uint64_t seed) {
  const Philox random({seed, content, site_named("data.split")});
  return random.uniform_f64(0) >= 1 - fraction;
}

RowSplit split_rows(const TokenStore& store, double fraction, uint64_t seed,
                    uint32_t first_held_out) {
  RowSplit out;
  for (int64_t row = 0; row < store.size(); ++row) {
    const StoredRow& place = store.place(row);
    const bool held = first_held_out < UINT32_MAX ? place.file >= first_held_out
                                                  : is_held_out(place.content, fraction, seed);
    (held ? out.held_out : out.training).push_back(row);
  }
  return out;
}

}  // namespace ingot
