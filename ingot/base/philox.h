#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <string_view>

namespace ingot {

// Names one stream of random numbers: which run, which optimizer step, which place in the program.
// Equal keys give equal numbers, on any thread, in any order; different keys give unrelated ones.
// One key serves one purpose: every function of Philox below reads the same underlying words.
struct RandomKey {
  uint64_t seed = 0;
  uint64_t step = 0;
  uint64_t site = 0;

  friend bool operator==(const RandomKey&, const RandomKey&) = default;
};

// A site from a name such as "layers.3.dropout": FNV-1a, 64 bits.
constexpr uint64_t site_named(std::string_view name) {
  uint64_t hash = 0xcbf29ce484222325U;
  for (const char letter : name) {
    hash = (hash ^ static_cast<uint8_t>(letter)) * 0x100000001b3U;
  }
  return hash;
}

using PhiloxBlock = std::array<uint32_t, 4>;

// The Philox4x32-10 bijection of a 128-bit counter under a 64-bit key.
// Salmon, Moraes, Dror, Shaw 2011, "Parallel random numbers: as easy as 1, 2, 3", section 3.3.
constexpr PhiloxBlock philox4x32_10(PhiloxBlock counter, std::array<uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    const uint64_t a = uint64_t{0xD2511F53U} * counter[0];
    const uint64_t b = uint64_t{0xCD9E8D57U} * counter[2];
    counter = {static_cast<uint32_t>(b >> 32) ^ counter[1] ^ key[0], static_cast<uint32_t>(b),
               static_cast<uint32_t>(a >> 32) ^ counter[3] ^ key[1], static_cast<uint32_t>(a)};
    key[0] += 0x9E3779B9U;  // golden ratio
    key[1] += 0xBB67AE85U;  // √3 − 1
  }
  return counter;
}

// Random numbers by index: a pure function of (key, index), no state, safe to share between
// threads.
//
// Layout. One bijection under the seed spreads (step, site) over 128 bits,
//   (k0, k1, h0, h1) = philox(counter = (step lo, step hi, site lo, site hi), key = seed),
// and block b of the stream is
//   philox(counter = (b lo, b hi, h0, h1), key = (k0, k1)).
// Within one seed, two different (step, site) can therefore never share a block; across seeds they
// would have to agree in all 128 bits.
//
// Element i of a 32-bit kind is word i mod 4 of block i / 4, of a 64-bit kind half i mod 2 of block
// i / 2: a loop over whole blocks (block, uniform4, normal4) gives the same numbers as one element
// at a time, at a quarter of the cost.
class Philox {
 public:
  constexpr explicit Philox(const RandomKey& key) {
    const PhiloxBlock spread =
        philox4x32_10({low(key.step), high(key.step), low(key.site), high(key.site)},
                      {low(key.seed), high(key.seed)});
    key_ = {spread[0], spread[1]};
    stream_ = {spread[2], spread[3]};
  }

  // What a SIMD kernel needs to compute many blocks at once, named as in the layout above.
  constexpr const std::array<uint32_t, 2>& key() const { return key_; }        // k0, k1
  constexpr const std::array<uint32_t, 2>& stream() const { return stream_; }  // h0, h1

  // Block b: four independent words, uniform over all 2³² values.
  constexpr PhiloxBlock block(uint64_t b) const {
    return philox4x32_10({low(b), high(b), stream_[0], stream_[1]}, key_);
  }

  // Word i, uniform over [0, 2³²).
  constexpr uint32_t word(uint64_t i) const { return block(i / 4)[i % 4]; }

  // Element i, uniform over [0, 2⁶⁴).
  constexpr uint64_t bits(uint64_t i) const { return wide(block(i / 2), i % 2); }

  // Element i, uniform over the multiples of 2⁻²⁴ in [0, 1).
  constexpr float uniform(uint64_t i) const { return unit(word(i)); }

  // Elements 4b … 4b + 3 of uniform().
  constexpr std::array<float, 4> uniform4(uint64_t b) const {
    const PhiloxBlock w = block(b);
    return {unit(w[0]), unit(w[1]), unit(w[2]), unit(w[3])};
  }

  // Element i, uniform over the multiples of 2⁻⁵³ in [0, 1).
  constexpr double uniform_f64(uint64_t i) const {
    return static_cast<double>(bits(i) >> 11) * 0x1p-53;
  }

  // Element i of the standard normal distribution N(0, 1). Box and Muller 1958: with u in (0, 1],
  // v in [0, 1), r = √(−2 ln u): r cos 2πv and r sin 2πv are independent normals. u has 32 bits, so
  // |normal| ≤ 6.67.
  float normal(uint64_t i) const {
    const PhiloxBlock w = block(i / 4);
    const size_t pair = i % 4 / 2 * 2;
    return box_muller(w[pair], w[pair + 1])[i % 2];
  }

  // Elements 4b … 4b + 3 of normal().
  std::array<float, 4> normal4(uint64_t b) const {
    const PhiloxBlock w = block(b);
    const std::array<float, 2> first = box_muller(w[0], w[1]);
    const std::array<float, 2> second = box_muller(w[2], w[3]);
    return {first[0], first[1], second[0], second[1]};
  }

  // The same in double, from 53-bit uniforms: |normal| ≤ 8.58.
  double normal_f64(uint64_t i) const {
    const PhiloxBlock w = block(i / 2);
    const double u = static_cast<double>((wide(w, 0) >> 11) + 1) * 0x1p-53;
    const double v = static_cast<double>(wide(w, 1) >> 11) * 0x1p-53;
    const double radius = std::sqrt(-2.0 * std::log(u));
    const double angle = 2.0 * std::numbers::pi * v;
    return radius * (i % 2 == 0 ? std::cos(angle) : std::sin(angle));
  }

 private:
  static constexpr uint32_t low(uint64_t x) { return static_cast<uint32_t>(x); }
  static constexpr uint32_t high(uint64_t x) { return static_cast<uint32_t>(x >> 32); }
  static constexpr uint64_t wide(const PhiloxBlock& w, uint64_t half) {
    return uint64_t{w[2 * half]} | uint64_t{w[2 * half + 1]} << 32;
  }
  static constexpr float unit(uint32_t word) { return static_cast<float>(word >> 8) * 0x1p-24F; }

  static std::array<float, 2> box_muller(uint32_t first, uint32_t second) {
    const float u = (static_cast<float>(first) + 1.0F) * 0x1p-32F;
    const float radius = std::sqrt(-2.0F * std::log(u));
    const float angle = 2.0F * std::numbers::pi_v<float> * unit(second);
    return {radius * std::cos(angle), radius * std::sin(angle)};
  }

  std::array<uint32_t, 2> key_{};
  std::array<uint32_t, 2> stream_{};
};

}  // namespace ingot
