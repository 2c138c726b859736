#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "ingot/quant/small_float.h"

namespace ingot::quant {

// Blocks of neighbouring values under one power of two: MXFP8 (e4m3, e5m2), MXFP6 (e3m2, e2m3) and
// MXFP4 (e2m1). x ≈ 2^s · element.
//   floor     s = floor(log2 max|x|) − emax of the element: OCP microscaling formats specification
//             1.0, section 6.3; Rouhani et al. 2023, arXiv:2310.10537. Elements above the format's
//             largest number saturate.
//   round_up  s = ceil(log2(max|x| / largest number)): nothing saturates. Mishra et al. 2025,
//             "Recipes for pre-training LLMs with MXFP8", arXiv:2506.08027.
enum class ScaleRule : uint8_t { floor, round_up };

struct MicroscalingCodes {
  SmallFloat element = e4m3;
  int64_t block = 32;
  std::vector<uint8_t> scales;  // E8M0, one a block
  std::vector<uint8_t> codes;   // one a value
};

// A block of zeros has scale code 0. A NaN makes the scale of its block NaN. Throws Error(shape)
// where the values are no whole blocks.
MicroscalingCodes microscaled(std::span<const float> values, const SmallFloat& element,
                              ScaleRule rule = ScaleRule::floor, int64_t block = 32);
std::vector<float> dequantized(const MicroscalingCodes& codes);

// MXINT8: whole numbers of −127 … 127 in units of 2^-6 under the same scales (the specification's
// section 5.3.4; emax 0). Halves to even; what is beyond saturates.
struct Mxint8Codes {
  int64_t block = 32;
  std::vector<uint8_t> scales;  // E8M0, one a block
  std::vector<int8_t> codes;    // one a value
};
// As microscaled() with the rule `floor`.
Mxint8Codes mxint8(std::span<const float> values, int64_t block = 32);
std::vector<float> dequantized(const Mxint8Codes& codes);

// Bits a value takes with its share of the scale: 4.25 for MXFP4.
double bits_per_value(const MicroscalingCodes& codes);

// NVFP4: E2M1 elements in blocks of 16 under an E4M3 scale, and one f32 scale for all.
//   t = max|x| / (6 · 448);  d = e4m3(max of the block / 6 / t);  x ≈ t · d · element
// A block of zeros has d = 1, and t is 1 where all are. NVIDIA 2025, "Pretraining large language
// models with NVFP4", arXiv:2509.25149.
struct Nvfp4Codes {
  float tensor_scale = 1;
  std::vector<uint8_t> scales;  // E4M3, one a block of 16
  std::vector<uint8_t> codes;   // E2M1, one a value
};
Nvfp4Codes nvfp4(std::span<const float> values);
std::vector<float> dequantized(const Nvfp4Codes& codes);

}  // namespace ingot::quant
