#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "ingot/text/vocabulary.h"

namespace ingot {

// A set of byte strings with a number each, walked byte by byte: finds all of them that begin at a
// place of a text.
class ByteTrie {
 public:
  using Node = uint32_t;
  static constexpr Node root = 0;
  static constexpr Node nowhere = UINT32_MAX;

  ByteTrie();
  void add(std::string_view bytes, TokenId value);  // not empty; a later value replaces
  bool empty() const { return values_.size() == 1; }

  Node step(Node from, char byte) const {
    if (from == root) {
      return first_[static_cast<uint8_t>(byte)];
    }
    const uint64_t key = key_of(from, byte);
    for (uint64_t at = slot_of(key); edges_[at].key != 0; at = (at + 1) & mask_) {
      if (edges_[at].key == key) {
        return edges_[at].to;
      }
    }
    return nowhere;
  }
  TokenId value(Node node) const { return values_[node]; }

  struct Match {
    size_t bytes = 0;  // 0: none
    TokenId value = no_token;
  };
  Match longest(std::string_view text) const;  // of those that `text` begins with

 private:
  struct Edge {
    uint64_t key;
    Node to;
  };

  // Never 0: edges of the root are in first_.
  static uint64_t key_of(Node from, char byte) {
    return uint64_t{from} << 8 | static_cast<uint8_t>(byte);
  }
  uint64_t slot_of(uint64_t key) const { return (key * 0x9E3779B97F4A7C15) >> shift_; }
  void grow();

  std::array<Node, 256> first_;
  std::vector<TokenId> values_ = {no_token};
  std::vector<Edge> edges_;
  uint64_t mask_ = 0;
  int shift_ = 0;
  size_t count_ = 0;
};

}  // namespace ingot
