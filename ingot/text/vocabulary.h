#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ingot {

using TokenId = int32_t;
inline constexpr TokenId no_token = -1;

// A hash for tables that live in memory only; equal on every machine of one byte order.
uint64_t quick_hash(std::string_view bytes);

// Byte strings numbered from 0, found by their content: one array of bytes, one open-addressed
// index. The empty string stands for a number that is not used and is never found.
class Vocabulary {
 public:
  Vocabulary() = default;
  // Where two are equal, the later one is found.
  explicit Vocabulary(std::span<const std::string> tokens);

  int64_t size() const { return static_cast<int64_t>(starts_.size()) - 1; }
  TokenId find(std::string_view bytes) const;  // no_token where it is absent
  // The bytes of a token; empty outside [0, size()).
  std::string_view text(TokenId id) const;
  size_t longest() const { return longest_; }  // bytes

 private:
  struct Slot {
    uint32_t hash;
    TokenId id;
  };

  std::string bytes_;
  std::vector<uint64_t> starts_ = {0};
  std::vector<Slot> slots_;
  uint64_t mask_ = 0;
  size_t longest_ = 0;
};

}  // namespace ingot
