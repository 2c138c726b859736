#include "ingot/data/packing.h"

#include <algorithm>
#include <deque>
#include <map>

#include "ingot/base/error.h"

namespace ingot {
namespace {

std::vector<Piece> pieces_of(std::span<const int64_t> lengths, int64_t capacity) {
  std::vector<Piece> out;
  for (size_t document = 0; document < lengths.size(); ++document) {
    check(lengths[document] >= 0, ErrorKind::argument, "packing: document ", document,
          " has a length below 0: ", lengths[document]);
    for (int64_t start = 0; start < lengths[document]; start += capacity) {
      out.push_back(
          {static_cast<int64_t>(document), start, std::min(capacity, lengths[document] - start)});
    }
  }
  return out;
}

}  // namespace

std::vector<Bin> best_fit_packing(std::span<const int64_t> lengths, int64_t capacity) {
  check(capacity >= 1, ErrorKind::argument, "packing: the capacity must be at least 1: got ",
        capacity);
  std::vector<Piece> pieces = pieces_of(lengths, capacity);
  std::stable_sort(pieces.begin(), pieces.end(),
                   [](const Piece& a, const Piece& b) { return a.length > b.length; });
  std::vector<Bin> bins;
  std::map<int64_t, std::deque<size_t>> by_space;  // the bins of a free space, in order of arrival
  for (const Piece& piece : pieces) {
    const auto fits = by_space.lower_bound(piece.length);
    size_t bin = bins.size();
    int64_t space = capacity;
    if (fits == by_space.end()) {
      bins.emplace_back();
    } else {
      space = fits->first;
      bin = fits->second.front();
      fits->second.pop_front();
      if (fits->second.empty()) {
        by_space.erase(fits);
      }
    }
    bins[bin].push_back(piece);
    if (space > piece.length) {
      by_space[space - piece.length].push_back(bin);
    }
  }
  return bins;
}

}  // namespace ingot
