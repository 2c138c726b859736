#pragma once

#include <bit>
#include <cstdint>

namespace ingot {

// IEEE 754 binary16: 1 sign, 5 exponent, 10 fraction bits.
using F16 = _Float16;

// bfloat16: the upper half of a binary32 (1 sign, 8 exponent, 7 fraction bits).
// Conversion from float rounds to nearest, ties to even; NaN stays NaN.
struct BF16 {
  BF16() = default;
  explicit BF16(float value) {
    const uint32_t word = std::bit_cast<uint32_t>(value);
    const bool is_nan = (word & 0x7fffffffU) > 0x7f800000U;
    const uint32_t rounded = word + 0x7fffU + ((word >> 16) & 1U);
    bits = static_cast<uint16_t>(is_nan ? (word >> 16) | 0x40U : rounded >> 16);
  }
  explicit BF16(double value) : BF16(static_cast<float>(value)) {}
  explicit operator float() const { return std::bit_cast<float>(uint32_t{bits} << 16); }
  explicit operator double() const { return static_cast<double>(static_cast<float>(*this)); }
  friend bool operator==(BF16 a, BF16 b) { return static_cast<float>(a) == static_cast<float>(b); }

  uint16_t bits = 0;
};
static_assert(sizeof(BF16) == 2);

}  // namespace ingot
