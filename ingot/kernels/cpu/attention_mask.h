#pragma once

#include <algorithm>
#include <cstdint>

#include "ingot/kernels/attention.h"

namespace ingot::kernels {

// Tiles are cut at fixed places, so what a query's row comes out as does not depend on the others.
// The forward's tiles are taller: keys and values are converted once a tile.
inline constexpr int64_t forward_queries = 128;
inline constexpr int64_t tile_queries = 64;
inline constexpr int64_t tile_keys = 64;
// Tiles on matrix instructions: a score tile and its probabilities stay in the second-level cache.
inline constexpr int64_t matrix_queries = 128;
inline constexpr int64_t matrix_keys = 256;
struct TileSize {
  int64_t queries;
  int64_t keys;
};
// Rows of tiles are padded to a multiple of this, which whole vectors of every target divide.
inline constexpr int64_t tile_unit = 16;
constexpr int64_t padded(int64_t size) { return (size + tile_unit - 1) / tile_unit * tile_unit; }
constexpr int64_t tiles(int64_t size, int64_t tile) { return (size + tile - 1) / tile; }

struct Span {
  int64_t begin;
  int64_t end;
  bool empty() const { return begin >= end; }
  int64_t size() const { return end - begin; }
};

// The part of [begin, begin + size) that `span` covers, counted from `begin`.
inline Span within(Span span, int64_t begin, int64_t size) {
  const int64_t from = std::clamp<int64_t>(span.begin - begin, 0, size);
  return {from, std::clamp<int64_t>(span.end - begin, from, size)};
}

// Which (query i, key j) of batch row b see each other. Leaving documents aside, the keys of a
// query are one span and so are the queries of a key, and both only move right with i and j; so the
// union over a range of queries is given by its first and last.
class Visibility {
 public:
  Visibility(const AttentionRule& rule, int64_t b, int64_t queries, int64_t keys)
      : causal_(rule.causal),
        window_(rule.window),
        offset_(rule.query_offset),
        queries_(queries),
        keys_(keys) {
    if (rule.key_lengths.data != nullptr) {
      keys_ = std::clamp<int64_t>(rule.key_lengths.as<int32_t>()[b], 0, keys);
    }
    if (rule.documents.data != nullptr) {
      documents_ = rule.documents.as<int32_t>() + b * keys;
    }
  }

  int64_t keys() const { return keys_; }  // those that are no padding
  // Keys that some query in [first, last] sees; padding is left out.
  Span keys_of(int64_t first, int64_t last) const {
    const int64_t low = window_ > 0 ? first + offset_ - window_ + 1 : 0;
    int64_t high = keys_;
    if (causal_) {
      high = last + offset_ + 1;
    } else if (window_ > 0) {
      high = last + offset_ + window_;
    }
    return {std::max<int64_t>(low, 0), std::clamp<int64_t>(high, 0, keys_)};
  }
  // Queries that see some key in [first, last], none of which is padding.
  Span queries_of(int64_t first, int64_t last) const {
    int64_t low = 0;
    if (causal_) {
      low = first - offset_;
    } else if (window_ > 0) {
      low = first - offset_ - window_ + 1;
    }
    const int64_t high = window_ > 0 ? last - offset_ + window_ : queries_;
    return {std::max<int64_t>(low, 0), std::clamp<int64_t>(high, 0, queries_)};
  }

  // Document ids of the keys, and of the queries from query 0 on; null without documents.
  const int32_t* key_documents() const { return documents_; }
  const int32_t* query_documents() const {
    return documents_ == nullptr ? nullptr : documents_ + offset_;
  }

  enum class Tile : uint8_t { hidden, partial, whole };
  // Whether no pair, some pairs or all pairs of a tile see each other ("partial" when unsure).
  Tile tile(Span queries, Span keys) const {
    const Span seen = keys_of(queries.begin, queries.end - 1);
    if (queries.empty() || keys.empty() || seen.begin >= keys.end || seen.end <= keys.begin) {
      return Tile::hidden;
    }
    const int64_t inner_begin = keys_of(queries.end - 1, queries.end - 1).begin;
    const int64_t inner_end = keys_of(queries.begin, queries.begin).end;
    const bool whole = inner_begin <= keys.begin && inner_end >= keys.end;
    if (documents_ == nullptr) {
      return whole ? Tile::whole : Tile::partial;
    }
    const auto [q_low, q_high] =
        std::minmax_element(query_documents() + queries.begin, query_documents() + queries.end);
    const auto [k_low, k_high] =
        std::minmax_element(documents_ + keys.begin, documents_ + keys.end);
    if (*q_high < *k_low || *k_high < *q_low) {
      return Tile::hidden;
    }
    const bool one_document = *q_low == *q_high && *k_low == *k_high;
    return whole && one_document ? Tile::whole : Tile::partial;
  }

 private:
  bool causal_;
  int64_t window_;
  int64_t offset_;
  int64_t queries_;
  int64_t keys_;
  const int32_t* documents_ = nullptr;
};

}  // namespace ingot::kernels
