#pragma once

#include <bit>
#include <cstdint>
#include <vector>

#include "ingot/text/vocabulary.h"

namespace ingot {

// What two adjacent tokens become, and how early: the smallest rank goes first.
struct Merge {
  static constexpr uint32_t never = UINT32_MAX;
  uint32_t rank = never;
  TokenId result = no_token;
};

// Merges by their two parts. Most look-ups find nothing; a bitmap small enough for the cache
// answers them.
class PairMap {
 public:
  PairMap() : PairMap(0) {}
  explicit PairMap(size_t expected)
      : slots_(std::bit_ceil(2 * expected + 2), Slot{0, {}}),
        filter_(std::bit_ceil(expected / 8 + 8), 0),
        shift_(64 - std::countr_zero(slots_.size())),
        filter_shift_(64 - std::countr_zero(filter_.size() * 64)) {}

  size_t size() const { return count_; }

  // Keeps the smaller rank of two for one pair. At most as many pairs as were expected.
  void add(TokenId left, TokenId right, Merge merge) {
    const uint64_t key = key_of(left, right);
    uint64_t at = place(key);
    while (slots_[at].key != 0 && slots_[at].key != key) {
      at = (at + 1) & (slots_.size() - 1);
    }
    count_ += slots_[at].key == 0 ? 1 : 0;
    if (slots_[at].key == 0 || merge.rank < slots_[at].merge.rank) {
      slots_[at] = {key, merge};
    }
    const uint64_t bit = (key * filter_factor) >> filter_shift_;
    filter_[bit >> 6] |= uint64_t{1} << (bit & 63);
  }

  Merge find(TokenId left, TokenId right) const {
    const uint64_t key = key_of(left, right);
    const uint64_t bit = (key * filter_factor) >> filter_shift_;
    if ((filter_[bit >> 6] >> (bit & 63) & 1) == 0) {
      return {};
    }
    uint64_t at = place(key);
    while (slots_[at].key != 0) {
      if (slots_[at].key == key) {
        return slots_[at].merge;
      }
      at = (at + 1) & (slots_.size() - 1);
    }
    return {};
  }

 private:
  struct Slot {
    uint64_t key;  // 0: free
    Merge merge;
  };
  static constexpr uint64_t filter_factor = 0xD6E8FEB86659FD93;

  // Never 0: ids are shifted by one.
  static uint64_t key_of(TokenId left, TokenId right) {
    return uint64_t{static_cast<uint32_t>(left) + 1} << 32 | (static_cast<uint32_t>(right) + 1);
  }
  uint64_t place(uint64_t key) const { return (key * 0x9E3779B97F4A7C15) >> shift_; }

  std::vector<Slot> slots_;
  std::vector<uint64_t> filter_;
  int shift_;
  int filter_shift_;
  size_t count_ = 0;
};

}  // namespace ingot
