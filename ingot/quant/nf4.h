#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "ingot/tensor/tensor.h"

namespace ingot::quant {

// 4-bit NormalFloat: x ≈ codebook[code] · max|x| of its block, the codebook being quantiles of the
// normal distribution with an exact 0. Dettmers et al. 2023, arXiv:2305.14314, section 3 and
// appendix E; the values are those that bitsandbytes stores as f32.
inline constexpr std::array<float, 16> nf4_codebook = {-1.0F,
                                                       -0.6961928009986877F,
                                                       -0.5250730514526367F,
                                                       -0.39491748809814453F,
                                                       -0.28444138169288635F,
                                                       -0.18477343022823334F,
                                                       -0.09105003625154495F,
                                                       0.0F,
                                                       0.07958029955625534F,
                                                       0.16093020141124725F,
                                                       0.24611230194568634F,
                                                       0.33791524171829224F,
                                                       0.44070982933044434F,
                                                       0.5626170039176941F,
                                                       0.7229568362236023F,
                                                       1.0F};

// A run of values. Codes lie two a byte, the first in the upper half. The largest magnitudes of the
// blocks are f32, or ("double quantization") 8 bits each: offset + map[code] · scale, one scale for
// 256 of them, with the dynamic map of kernels/optim_8bit.h.
struct Nf4Codes {
  int64_t count = 0;
  int64_t block = 64;
  Tensor packed;        // [⌈count / 2⌉] u8
  Tensor absmax;        // [blocks] f32, or undefined
  Tensor scale_codes;   // [blocks] u8, where absmax is undefined
  Tensor scale_scales;  // [⌈blocks / 256⌉] f32
  float offset = 0;     // mean of all magnitudes

  int64_t bytes() const;
  // 8 · bytes / count: 4.5 with blocks of 64 and f32 magnitudes, 4.127 with double quantization.
  double bits_per_value() const;
};

enum class ScaleStorage : uint8_t { f32, doubled };

// The nearest code of each value; halfway the smaller. values: f32, dense, taken in memory order. A
// block of zeros has magnitude 0. On the meta device only the sizes are found. Throws
// Error(numeric) with the index of a value that is not finite.
Nf4Codes nf4_codes(const Tensor& values, int64_t block = 64,
                   ScaleStorage scales = ScaleStorage::f32);

// max |x| of block b as it is kept.
float nf4_absmax(const Nf4Codes& codes, int64_t block);
// Values [begin, begin + out.size()), on one thread.
void nf4_decode(const Nf4Codes& codes, int64_t begin, std::span<float> out);

// The code nearest to x in [−1, 1].
uint8_t nf4_nearest(float x);

}  // namespace ingot::quant
