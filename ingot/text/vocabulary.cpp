#include "ingot/text/vocabulary.h"

#include <bit>
#include <cstring>

namespace ingot {

// Eight bytes at a time by multiplication and rotation, with the finisher of MurmurHash3.
uint64_t quick_hash(std::string_view bytes) {
  constexpr uint64_t factor = 0x9E3779B97F4A7C15;
  uint64_t hash = bytes.size() * factor;
  const char* at = bytes.data();
  size_t left = bytes.size();
  for (; left >= 8; at += 8, left -= 8) {
    uint64_t part = 0;
    std::memcpy(&part, at, 8);
    hash = std::rotl((hash ^ part) * factor, 29);
  }
  uint64_t part = 0;
  if (left > 0) {
    std::memcpy(&part, at, left);
  }
  hash = (hash ^ part) * factor;
  hash ^= hash >> 33;
  hash *= 0xFF51AFD7ED558CCD;
  return hash ^ hash >> 33;
}

Vocabulary::Vocabulary(std::span<const std::string> tokens) {
  size_t total = 0;
  for (const std::string& token : tokens) {
    total += token.size();
    longest_ = std::max(longest_, token.size());
  }
  bytes_.reserve(total);
  starts_.reserve(tokens.size() + 1);
  slots_.assign(std::bit_ceil(2 * tokens.size() + 2), {0, no_token});
  mask_ = slots_.size() - 1;
  for (size_t id = 0; id < tokens.size(); ++id) {
    const std::string& token = tokens[id];
    bytes_ += token;
    starts_.push_back(bytes_.size());
    if (token.empty()) {
      continue;
    }
    const uint64_t hash = quick_hash(token);
    uint64_t at = hash & mask_;
    while (slots_[at].id != no_token && text(slots_[at].id) != token) {
      at = (at + 1) & mask_;
    }
    slots_[at] = {static_cast<uint32_t>(hash >> 32), static_cast<TokenId>(id)};
  }
}

TokenId Vocabulary::find(std::string_view bytes) const {
  if (slots_.empty() || bytes.empty() || bytes.size() > longest_) {
    return no_token;
  }
  const uint64_t hash = quick_hash(bytes);
  for (uint64_t at = hash & mask_; slots_[at].id != no_token; at = (at + 1) & mask_) {
    if (slots_[at].hash == static_cast<uint32_t>(hash >> 32) && text(slots_[at].id) == bytes) {
      return slots_[at].id;
    }
  }
  return no_token;
}

std::string_view Vocabulary::text(TokenId id) const {
  if (id < 0 || id >= size()) {
    return {};
  }
  const auto i = static_cast<size_t>(id);
  return std::string_view(bytes_).substr(starts_[i], starts_[i + 1] - starts_[i]);
}

}  // namespace ingot
