#pragma once

#include <array>
#include <cstring>
#include <span>
#include <string_view>
#include <vector>

#include "ingot/text/vocabulary.h"

namespace ingot {

// The tokens of words seen lately. Two direct-mapped tables: short words, compared as two integers,
// and longer ones. A new word takes the place of an older one; nothing is allocated after the
// first.
class WordCache {
 public:
  static constexpr size_t longest_word = 48;  // bytes

  WordCache() : short_(short_slots), long_(long_slots) {}

  // Appends the tokens of `word` if they are known. Zero-length words never are.
  bool append(std::string_view word, std::vector<TokenId>& out) const {
    if (word.size() < sizeof(Key)) {
      const Short& slot = short_[short_place(key_of(word))];
      if (slot.key != key_of(word)) {
        return false;
      }
      const size_t before = out.size();
      out.resize(before + 3);
      std::memcpy(out.data() + before, slot.ids.data(), sizeof(slot.ids));
      out.resize(before + slot.count);
      return true;
    }
    if (word.size() > longest_word) {
      return false;
    }
    const Long& slot = long_[quick_hash(word) & (long_slots - 1)];
    if (slot.length != word.size() ||
        std::memcmp(slot.text.data(), word.data(), word.size()) != 0) {
      return false;
    }
    out.insert(out.end(), slot.ids.begin(), slot.ids.begin() + slot.count);
    return true;
  }

  void keep(std::string_view word, std::span<const TokenId> ids) {
    if (word.size() < sizeof(Key)) {
      Short slot;
      slot.key = key_of(word);
      if (!word.empty() && ids.size() <= slot.ids.size()) {
        slot.count = static_cast<uint32_t>(ids.size());
        std::copy(ids.begin(), ids.end(), slot.ids.begin());
        short_[short_place(slot.key)] = slot;
      }
    } else if (word.size() <= longest_word) {
      Long& slot = long_[quick_hash(word) & (long_slots - 1)];
      if (ids.size() <= slot.ids.size()) {
        std::copy(word.begin(), word.end(), slot.text.begin());
        slot.length = static_cast<uint16_t>(word.size());
        slot.count = static_cast<uint16_t>(ids.size());
        std::copy(ids.begin(), ids.end(), slot.ids.begin());
      }
    }
  }

 private:
  // The bytes of a word of at most 15 and, in the last, their number: equal for equal words only.
  struct Key {
    uint64_t low = 0;
    uint64_t high = 0;
    bool operator==(const Key&) const = default;
  };
  struct Short {
    Key key;
    std::array<TokenId, 3> ids{};
    uint32_t count = 0;
  };
  struct Long {
    std::array<char, longest_word> text{};
    uint16_t length = 0;
    uint16_t count = 0;
    std::array<TokenId, 19> ids{};
  };
  static constexpr size_t short_slots = size_t{1} << 15;
  static constexpr size_t long_slots = size_t{1} << 12;

  static Key key_of(std::string_view word) {
    Key key;
    const char* at = word.data();
    const size_t n = word.size();
    // Two overlapping reads of fixed length instead of one of unknown length.
    if (n >= 8) {
      std::memcpy(&key.low, at, 8);
      if (n > 8) {
        std::memcpy(&key.high, at + n - 8, 8);
        key.high >>= 8 * (16 - n);
      }
    } else if (n >= 4) {
      uint32_t a = 0;
      uint32_t b = 0;
      std::memcpy(&a, at, 4);
      std::memcpy(&b, at + n - 4, 4);
      key.low = a | uint64_t{b} << 8 * (n - 4);
    } else if (n > 0) {
      const auto byte = [at](size_t i) { return uint64_t{static_cast<uint8_t>(at[i])}; };
      key.low = byte(0) | byte(n / 2) << 8 * (n / 2) | byte(n - 1) << 8 * (n - 1);
    }
    key.high |= uint64_t{n} << 56;
    return key;
  }
  static size_t short_place(const Key& key) {
    const uint64_t mixed = (key.low ^ (key.high * 0xD6E8FEB86659FD93)) * 0x9E3779B97F4A7C15;
    return static_cast<size_t>(mixed >> (64 - 15));
  }

  std::vector<Short> short_;
  std::vector<Long> long_;
};

}  // namespace ingot
