#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "ingot/base/half.h"

namespace ingot::quant {

// Bytes of blocks: little endian, at any address.

inline float half_at(const std::byte* at) {
  F16 value;
  std::memcpy(&value, at, sizeof value);
  return static_cast<float>(value);
}

inline void put_half(float value, std::byte* at) {
  const auto half = static_cast<F16>(value);
  std::memcpy(at, &half, sizeof half);
}

inline float rounded_to_half(float value) { return static_cast<float>(static_cast<F16>(value)); }

inline uint32_t byte_at(const std::byte* at) { return static_cast<uint32_t>(*at); }

inline std::byte low_byte(uint32_t value) { return static_cast<std::byte>(value & 0xffU); }

// Calls f(block, values) for each block of `block_values` values in `block_bytes` bytes.
template <int block_values, int block_bytes, class Bytes, class Values, class F>
void each_block(Bytes* blocks, Values* values, int64_t count, F&& f) {
  for (int64_t at = 0; at < count; at += block_values) {
    f(blocks, values + at);
    blocks += block_bytes;
  }
}

}  // namespace ingot::quant
