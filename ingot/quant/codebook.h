#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace ingot::quant {

// Blocks of values as the nearest entries of a map:  x ≈ map[code] · max|x| of the block.

// Ascending, with entries of magnitude 1. The dynamic map of 8 bits (Dettmers 2016,
// arXiv:1511.04561; kernels/optim_8bit.h) holds moments of optimizers and scales of NF4, signed or
// not.
std::span<const float> dynamic_map(bool is_signed);

// bitsandbytes' FP4 by code: a sign, two exponent bits and one fraction bit over 12, with 1/192 for
// the subnormal. Not ascending.
inline constexpr std::array<float, 16> fp4_codebook = {
    0.0F,  1.0F / 192,  2.0F / 3,  1.0F,  1.0F / 3,  0.5F,  1.0F / 6,  0.25F,
    -0.0F, -1.0F / 192, -2.0F / 3, -1.0F, -1.0F / 3, -0.5F, -1.0F / 6, -0.25F};

// The nearest entry of an ascending map; halfway the smaller.
size_t nearest_entry(std::span<const float> map, float x);

struct CodebookCodes {
  int64_t block = 256;
  std::vector<uint8_t> codes;  // one a value
  std::vector<float> absmax;   // one a block
};

// The last block may be shorter; a block of zeros has magnitude 0. Throws Error(argument) for a
// block below 1, Error(numeric) with the index of a value that is not finite.
CodebookCodes codebook_codes(std::span<const float> values, std::span<const float> map,
                             int64_t block);
std::vector<float> dequantized(const CodebookCodes& codes, std::span<const float> map);

}  // namespace ingot::quant
