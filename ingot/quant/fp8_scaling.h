#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "ingot/quant/small_float.h"

namespace ingot::quant {

// Tensors in FP8 under f32 scales:  code = e(x · scale),  x ≈ decoded / scale.
//   current  scale = largest number / max|x| of what is encoded: one for all, or one for each tile
//   delayed  scale from the largest of the last maxima, known before x is: one pass over x
// Micikevicius et al. 2022, arXiv:2209.05433, section 3; tiles of 1×128 for activations and 128×128
// for weights: DeepSeek-AI 2024, "DeepSeek-V3", arXiv:2412.19437, section 3.3.

struct Fp8Codes {
  SmallFloat format = e4m3;
  int64_t rows = 0;
  int64_t columns = 0;
  int64_t tile_rows = 0;  // of one scale; the last tile of a row or column may be smaller
  int64_t tile_columns = 0;
  std::vector<float> scales;  // row by row of tiles
  std::vector<uint8_t> codes;
};

// A tile of zeros has scale 1. Throws Error(shape) unless rows · columns is the number of values.
Fp8Codes fp8_tiles(std::span<const float> values, int64_t rows, int64_t columns, int64_t tile_rows,
                   int64_t tile_columns, const SmallFloat& format);
// One scale for all.
Fp8Codes fp8_tensor(std::span<const float> values, const SmallFloat& format);
Fp8Codes fp8_tensor(std::span<const float> values, const SmallFloat& format, float scale);
std::vector<float> dequantized(const Fp8Codes& codes);

float fp8_scale(float most, const SmallFloat& format);  // 1 for 0 and for what is not finite

// The maxima of a tensor's last uses. The scale is that of their largest, divided by 2^margin.
class DelayedScale {
 public:
  explicit DelayedScale(int64_t length = 16, int margin = 0) : length_(length), margin_(margin) {}

  float scale(const SmallFloat& format) const;  // 1 before the first maximum
  void observe(float most);

  const std::deque<float>& history() const { return history_; }
  void restore(std::deque<float> history) { history_ = std::move(history); }

 private:
  int64_t length_;
  int margin_;
  std::deque<float> history_;  // newest last
};

}  // namespace ingot::quant
