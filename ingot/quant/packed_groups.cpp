#include "ingot/quant/packed_groups.h"

#include <algorithm>
#include <cmath>

#include "ingot/base/error.h"
#include "ingot/base/half.h"

namespace ingot::quant {
namespace {

int32_t half_range(int64_t bits) { return int32_t{1} << (bits - 1); }

int32_t code_at(std::span<const int32_t> words, size_t k, int64_t bits) {
  const auto each = static_cast<size_t>(32 / bits);
  const uint32_t word =
      static_cast<uint32_t>(words[k / each]) >> (static_cast<size_t>(bits) * (k % each));
  const uint32_t mask = (uint32_t{1} << bits) - 1;
  return static_cast<int32_t>(word & mask) - half_range(bits);
}

float rounded_to(float x, DType dtype) {
  switch (dtype) {
    case DType::bf16: return static_cast<float>(static_cast<BF16>(x));
    case DType::f16: return static_cast<float>(static_cast<F16>(x));
    default: return x;
  }
}

}  // namespace

int64_t words_of(int64_t values, const PackedGroups& format) {
  const int64_t each = 32 / format.bits;
  return (values + each - 1) / each;
}

void packed_scales(std::span<const float> x, const PackedGroups& format, DType scale_type,
                   std::span<float> scales) {
  const float steps = static_cast<float>((1 << format.bits) - 1) / 2;
  for (size_t g = 0; g < scales.size(); ++g) {
    float most = 0;
    const size_t begin = g * static_cast<size_t>(format.group);
    for (size_t k = begin; k < begin + static_cast<size_t>(format.group); ++k) {
      check(std::isfinite(x[k]), ErrorKind::numeric, "value ", k, " of the row is not finite");
      most = std::max(most, std::abs(x[k]));
    }
    const float scale = rounded_to(most / steps, scale_type);
    scales[g] = scale > 0 ? scale : 1;
  }
}

void pack_row(std::span<const float> x, std::span<const float> scales, const PackedGroups& format,
              std::span<int32_t> words) {
  const int32_t half = half_range(format.bits);
  const auto each = static_cast<size_t>(32 / format.bits);
  for (size_t w = 0; w < words.size(); ++w) {
    uint32_t word = 0;
    for (size_t i = 0; i < each && w * each + i < x.size(); ++i) {
      const size_t k = w * each + i;
      const float code = std::nearbyint(x[k] / scales[k / static_cast<size_t>(format.group)]);
      const auto most = static_cast<float>(half);
      const auto bounded = static_cast<int32_t>(std::clamp(code, -most, most - 1));
      word |= static_cast<uint32_t>(bounded + half) << (static_cast<size_t>(format.bits) * i);
    }
    words[w] = static_cast<int32_t>(word);
  }
}

void unpack_codes(std::span<const int32_t> words, int64_t bits, std::span<int32_t> codes) {
  for (size_t k = 0; k < codes.size(); ++k) {
    codes[k] = code_at(words, k, bits);
  }
}

void unpack_row(std::span<const int32_t> words, std::span<const float> scales,
                std::span<const int32_t> zeros, const PackedGroups& format, std::span<float> x) {
  const auto group = static_cast<size_t>(format.group);
  for (size_t g = 0; g < scales.size(); ++g) {
    const int32_t zero = zeros.empty() ? 0 : zeros[g];
    for (size_t k = g * group; k < (g + 1) * group; ++k) {
      x[k] = scales[g] * static_cast<float>(code_at(words, k, format.bits) - zero);
    }
  }
}

}  // namespace ingot::quant
