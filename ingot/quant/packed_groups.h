#pragma once

#include <cstdint>
#include <span>

#include "ingot/base/dtype.h"

namespace ingot::quant {

// Rows of integers of 4 or 8 bits in words of 32, with a scale for each group of neighbours:
//   x[k] ≈ scale[k / group] · (code[k] − zero[k / group]),  −2^(bits−1) ≤ code, zero < 2^(bits−1)
// A word holds code + 2^(bits−1) of 32 / bits neighbours, the first in its lowest bits; what is
// left of a row's last word is 0. This is how compressed-tensors packs weights ("pack-quantized").
struct PackedGroups {
  int64_t bits = 4;    // 4 or 8
  int64_t group = 64;  // values under one scale; a row is a whole number of groups
};

int64_t words_of(int64_t values, const PackedGroups& format);

// Scales of a row: max|x| / ((2^bits − 1) / 2) for each group, rounded to `scale_type` (f32, bf16
// or f16); 1 where the group is zeros or its scale underflows. Throws Error(numeric) with the index
// of a value that is not finite.
void packed_scales(std::span<const float> x, const PackedGroups& format, DType scale_type,
                   std::span<float> scales);

// The nearest codes, without zeros; halves round to even.
void pack_row(std::span<const float> x, std::span<const float> scales, const PackedGroups& format,
              std::span<int32_t> words);

// The codes of `count` values.
void unpack_codes(std::span<const int32_t> words, int64_t bits, std::span<int32_t> codes);

// x of a row; `zeros` empty where there are none.
void unpack_row(std::span<const int32_t> words, std::span<const float> scales,
                std::span<const int32_t> zeros, const PackedGroups& format, std::span<float> x);

}  // namespace ingot::quant
