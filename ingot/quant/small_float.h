#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace ingot::quant {

// Floating-point numbers of at most 8 bits: sign, exponent, fraction, from the highest bit down.
//   value = (−1)^s · 2^(e − bias) · (1 + f/2^M),  subnormal (e = 0): (−1)^s · 2^(1 − bias) · f/2^M
// Micikevicius et al. 2022, "FP8 formats for deep learning", arXiv:2209.05433; OCP 8-bit floating
// point specification 1.0; OCP microscaling formats specification 1.0, section 5.3.
enum class Top : uint8_t {
  finite,   // every code is a number
  nan,      // all ones is NaN, there is no infinity (E4M3)
  infinity  // the largest exponent is infinity and NaN, as in IEEE 754 (E5M2)
};

struct SmallFloat {
  std::string_view name;
  int exponent_bits;
  int fraction_bits;
  int bias;
  Top top;

  constexpr int bits() const { return 1 + exponent_bits + fraction_bits; }
  constexpr uint8_t sign() const { return static_cast<uint8_t>(1U << (bits() - 1)); }
  // The code of the largest number, without its sign.
  constexpr uint8_t largest_code() const {
    const int all = (1 << (exponent_bits + fraction_bits)) - 1;
    const int numbers = top == Top::finite ? all
                        : top == Top::nan  ? all - 1
                                           : all - (1 << fraction_bits);
    return static_cast<uint8_t>(numbers);
  }
  double largest() const;        // 448 of E4M3
  int largest_exponent() const;  // floor(log2 largest): 8 of E4M3
};

inline constexpr SmallFloat e4m3{"e4m3", 4, 3, 7, Top::nan};
inline constexpr SmallFloat e5m2{"e5m2", 5, 2, 15, Top::infinity};
inline constexpr SmallFloat e3m2{"e3m2", 3, 2, 3, Top::finite};
inline constexpr SmallFloat e2m3{"e2m3", 2, 3, 1, Top::finite};
inline constexpr SmallFloat e2m1{"e2m1", 2, 1, 1, Top::finite};

// By name; "e4m3fn" is e4m3.
std::optional<SmallFloat> small_float_named(std::string_view name);

// The value of a code; bits above the format's are ignored.
double decoded(const SmallFloat& format, uint8_t code);

// The code of the nearest number, ties to the even code; −0 keeps its sign.
//   saturate  above the largest number it is taken, of infinity too
//   overflow  what rounds beyond it is infinity, or NaN where the format has none (finite: as
//             saturate)
// NaN gives a NaN. Throws Error(numeric) for NaN where the format has none.
enum class Overflow : uint8_t { saturate, overflow };
uint8_t encoded(const SmallFloat& format, double x, Overflow overflow = Overflow::saturate);

// One of the two neighbours, the upper one with the probability that makes the mean x; u is uniform
// in [0, 1). Saturates.
uint8_t encoded_stochastically(const SmallFloat& format, double x, double u);

// Powers of two: the scale of a microscaling block. Code k is 2^(k − 127), 255 is NaN.
double decoded_e8m0(uint8_t code);
uint8_t encoded_e8m0(int exponent);  // clamped to −127 … 127

}  // namespace ingot::quant
