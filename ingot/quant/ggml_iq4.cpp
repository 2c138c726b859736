#include "ingot/quant/ggml_families.h"
#include "ingot/quant/symmetric_fit.h"

// Four-bit codes of 16 levels that lie closer together near 0, where weights are. Layouts: ggml,
// src/ggml-common.h, block_iq4_nl and block_iq4_xs; levels: kvalues_iq4nl there.
namespace ingot::quant {
namespace {

constexpr std::array<float, 16> levels = {-127, -104, -83, -65, -49, -35, -22, -10,
                                          1,    13,   25,  38,  53,  69,  89,  113};

// How many of the 15 middles between neighbouring levels lie below v: the code of the nearest.
inline int nearest_code(float v) {
  int below = 0;
  for (size_t i = 0; i + 1 < levels.size(); ++i) {
    below += v > (levels[i] + levels[i + 1]) / 2 ? 1 : 0;
  }
  return below;
}

struct Iq4Grid {
  static constexpr float low = -127;
  static constexpr float high = 113;
  static constexpr float spacing = 0.02F;
  // The same as levels[nearest_code(v)] by additions alone, which the compiler can vectorise.
  static float nearest(float v) {
    float level = levels[0];
    for (size_t i = 0; i + 1 < levels.size(); ++i) {
      level += v > (levels[i] + levels[i + 1]) / 2 ? levels[i + 1] - levels[i] : 0.0F;
    }
    return level;
  }
};

// 16 bytes of two codes: value i of the first 16 shares its byte with value i + 16.
void decode_codes(const std::byte* codes, float d, float* y) {
  for (int i = 0; i < 16; ++i) {
    const uint32_t pair = byte_at(codes + i);
    y[i] = d * levels[pair & 15U];
    y[i + 16] = d * levels[pair >> 4];
  }
}

void encode_codes(const float* x, float d, std::byte* codes) {
  const float inverse = inverse_of(d);
  for (int i = 0; i < 16; ++i) {
    codes[i] = low_byte(static_cast<uint32_t>(nearest_code(x[i] * inverse)) |
                        static_cast<uint32_t>(nearest_code(x[i + 16] * inverse)) << 4);
  }
}

// d: 2 bytes; 16 bytes of codes.
void decode_iq4_nl(const std::byte* blocks, int64_t values, float* out) {
  each_block<32, 18>(blocks, out, values, [](const std::byte* block, float* y) {
    decode_codes(block + 2, half_at(block), y);
  });
}

void encode_iq4_nl(const float* values, int64_t count, std::byte* blocks) {
  each_block<32, 18>(blocks, values, count, [](std::byte* block, const float* x) {
    const float d = best_half<Iq4Grid, 32>(x, best_scale<Iq4Grid, 32>(x, 6));
    put_half(d, block);
    encode_codes(x, d, block + 2);
  });
}

// d: 2 bytes; the upper two bits of the eight scales: 2 bytes; the lower four: 4 bytes; 8 times 16
// bytes of codes. A scale is stored as s + 32.
void decode_iq4_xs(const std::byte* blocks, int64_t values, float* out) {
  each_block<256, 136>(blocks, out, values, [](const std::byte* block, float* y) {
    const float d = half_at(block);
    const uint32_t upper = byte_at(block + 2) | byte_at(block + 3) << 8;
    for (int part = 0; part < 8; ++part) {
      const uint32_t lower = byte_at(block + 4 + part / 2) >> (4 * (part % 2)) & 15U;
      const uint32_t stored = lower | (upper >> (2 * part) & 3U) << 4;
      const float scale = d * static_cast<float>(static_cast<int>(stored) - 32);
      decode_codes(block + 8 + 16 * part, scale, y + 32 * part);
    }
  });
}

void encode_iq4_xs(const float* values, int64_t count, std::byte* blocks) {
  each_block<256, 136>(blocks, values, count, [](std::byte* block, const float* x) {
    const auto fit = fit_shared<Iq4Grid, 8, 32>(x, -32, 31, 4);
    put_half(fit.d, block);
    uint32_t upper = 0;
    std::fill(block + 4, block + 8, std::byte{0});
    for (int part = 0; part < 8; ++part) {
      const auto stored = static_cast<uint32_t>(fit.s[part] + 32);
      block[4 + part / 2] |= low_byte((stored & 15U) << (4 * (part % 2)));
      upper |= stored >> 4 << (2 * part);
      encode_codes(x + 32 * part, fit.d * static_cast<float>(fit.s[part]), block + 8 + 16 * part);
    }
    block[2] = low_byte(upper);
    block[3] = low_byte(upper >> 8);
  });
}

}  // namespace

GgmlCodec iq4_nl_codec() { return {GgmlType::iq4_nl, decode_iq4_nl, encode_iq4_nl}; }
GgmlCodec iq4_xs_codec() { return {GgmlType::iq4_xs, decode_iq4_xs, encode_iq4_xs}; }

}  // namespace ingot::quant
