#pragma once

#include <bit>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <limits>
#include <optional>

namespace ingot {

// Sums that do not depend on the order or the grouping of what is added: integers of 128 bits in
// units of 2⁻⁷². A float at or above 2⁻⁴⁹ in magnitude (a double: 2⁻²⁰) is added exactly, a smaller
// one rounded to a unit first. 1024 numbers below 2⁴⁵ fit; a larger one, infinity and NaN make the
// sum NaN for good.
struct ExactSum {
  uint64_t low = 0;  // two's complement
  int64_t high = 0;

  friend bool operator==(const ExactSum&, const ExactSum&) = default;
};

namespace exact {

__extension__ typedef __int128 Wide;

inline constexpr int unit_exponent = -72;
inline constexpr int64_t not_a_number = std::numeric_limits<int64_t>::min();  // of high

// x in units; absent where it has none.
template <std::floating_point T>
std::optional<Wide> units_of(T x) {
  using Bits = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;
  constexpr int fraction_bits = std::numeric_limits<T>::digits - 1;
  constexpr int bias = std::numeric_limits<T>::max_exponent - 1;
  const auto bits = std::bit_cast<Bits>(x);
  const auto exponent = static_cast<int>((bits << 1) >> (fraction_bits + 1));
  if (exponent >= bias + 45) {
    return std::nullopt;
  }
  Wide value = static_cast<Wide>(bits & ((Bits{1} << fraction_bits) - 1));
  value += exponent > 0 ? Wide{1} << fraction_bits : Wide{0};
  // value · 2^(exponent − bias − fraction_bits), exponent 1 for subnormal numbers
  const int shift = (exponent > 0 ? exponent : 1) - bias - fraction_bits - unit_exponent;
  if (shift >= 0) {
    value <<= shift;
  } else if (shift < -62) {
    value = 0;
  } else {
    value = (value + (Wide{1} << (-shift - 1))) >> -shift;  // to the nearest unit
  }
  return std::signbit(x) ? -value : value;
}

}  // namespace exact

template <std::floating_point T>
void add_exactly(ExactSum& sum, T x) {
  const std::optional<exact::Wide> units = exact::units_of(x);
  if (!units || sum.high == exact::not_a_number) {
    sum = {0, exact::not_a_number};
    return;
  }
  const exact::Wide before = static_cast<exact::Wide>(sum.high) * (exact::Wide{1} << 64) +
                             static_cast<exact::Wide>(sum.low);
  const exact::Wide after = before + *units;
  sum = {static_cast<uint64_t>(after), static_cast<int64_t>(after >> 64)};
}

// The nearest double, within one unit in its last place.
inline double value_of(const ExactSum& sum) {
  if (sum.high == exact::not_a_number) {
    return std::numeric_limits<double>::quiet_NaN();
  }
  // The magnitude, so that sums of opposite sign round alike.
  const bool negative = sum.high < 0;
  const uint64_t low = negative ? ~sum.low + 1 : sum.low;
  const uint64_t high = negative ? ~static_cast<uint64_t>(sum.high) + (low == 0 ? 1 : 0)
                                 : static_cast<uint64_t>(sum.high);
  const double magnitude = std::ldexp(static_cast<double>(high), 64 + exact::unit_exponent) +
                           std::ldexp(static_cast<double>(low), exact::unit_exponent);
  return negative ? -magnitude : magnitude;
}

}  // namespace ingot
