#include "ingot/quant/affine_fit.h"
#include "ingot/quant/ggml_families.h"

// A half scale d and a half offset m for 32 values: x = d·q + m. Layouts: ggml, src/ggml-common.h,
// block_q4_1 and block_q5_1. Value i of the first 16 shares its byte with value i + 16.
namespace ingot::quant {
namespace {

constexpr int values_in_block = 32;
constexpr int half_block = 16;

Affine rounded_to_half(Affine fit) {
  return {quant::rounded_to_half(fit.d), quant::rounded_to_half(fit.m)};
}

// The best of the halves around the real fit, and around the plain one that lays the range of x
// over all steps.
template <int top>
Affine block_fit(const float* x) {
  const auto [low, high] = std::minmax_element(x, x + values_in_block);
  Affine best = rounded_to_half(Affine{(*high - *low) / top, *low});
  float least = squared_error<top, values_in_block>(x, best);
  const auto consider = [&](Affine fit) {
    const Affine halves = rounded_to_half(fit);
    const float error = squared_error<top, values_in_block>(x, halves);
    if (error < least) {
      least = error;
      best = halves;
    }
  };
  const Affine real = best_affine<top, values_in_block>(x, false, 12);
  consider(real);
  for (int round = 0; round < 2; ++round) {
    const Affine centre = best;
    const float d_step = std::max(centre.d * 0x1p-10F, 0x1p-24F);
    const float m_step = std::max(std::abs(centre.m) * 0x1p-10F, 0x1p-24F);
    for (const float d : {centre.d - d_step, centre.d, centre.d + d_step}) {
      for (const float m : {centre.m - m_step, centre.m, centre.m + m_step}) {
        consider({std::max(d, 0.0F), m});
      }
    }
  }
  return best;
}

template <int top>
uint32_t code(float x, float inverse, float m) {
  return static_cast<uint32_t>(static_cast<int>(code_of<top>(x, inverse, m)));
}

// d, m: 2 bytes each; 16 bytes of two codes.
void decode_q4_1(const std::byte* blocks, int64_t values, float* out) {
  each_block<32, 20>(blocks, out, values, [](const std::byte* block, float* y) {
    const float d = half_at(block);
    const float m = half_at(block + 2);
    for (int i = 0; i < half_block; ++i) {
      const uint32_t pair = byte_at(block + 4 + i);
      y[i] = d * static_cast<float>(pair & 15U) + m;
      y[i + half_block] = d * static_cast<float>(pair >> 4) + m;
    }
  });
}

void encode_q4_1(const float* values, int64_t count, std::byte* blocks) {
  each_block<32, 20>(blocks, values, count, [](std::byte* block, const float* x) {
    const auto [d, m] = block_fit<15>(x);
    const float inverse = inverse_of(d);
    put_half(d, block);
    put_half(m, block + 2);
    for (int i = 0; i < half_block; ++i) {
      block[4 + i] =
          low_byte(code<15>(x[i], inverse, m) | code<15>(x[i + half_block], inverse, m) << 4);
    }
  });
}

// d, m: 2 bytes each; the fifth bits of the 32 codes: 4 bytes; the lower four: 16 bytes.
void decode_q5_1(const std::byte* blocks, int64_t values, float* out) {
  each_block<32, 24>(blocks, out, values, [](const std::byte* block, float* y) {
    const float d = half_at(block);
    const float m = half_at(block + 2);
    uint32_t fifth = 0;
    std::memcpy(&fifth, block + 4, sizeof fifth);
    for (int i = 0; i < half_block; ++i) {
      const uint32_t pair = byte_at(block + 8 + i);
      y[i] = d * static_cast<float>((pair & 15U) | ((fifth >> i & 1U) << 4)) + m;
      y[i + half_block] =
          d * static_cast<float>((pair >> 4) | ((fifth >> (i + half_block) & 1U) << 4)) + m;
    }
  });
}

void encode_q5_1(const float* values, int64_t count, std::byte* blocks) {
  each_block<32, 24>(blocks, values, count, [](std::byte* block, const float* x) {
    const auto [d, m] = block_fit<31>(x);
    const float inverse = inverse_of(d);
    put_half(d, block);
    put_half(m, block + 2);
    uint32_t fifth = 0;
    for (int i = 0; i < half_block; ++i) {
      const uint32_t first = code<31>(x[i], inverse, m);
      const uint32_t second = code<31>(x[i + half_block], inverse, m);
      block[8 + i] = low_byte((first & 15U) | (second & 15U) << 4);
      fifth |= first >> 4 << i | second >> 4 << (i + half_block);
    }
    std::memcpy(block + 4, &fifth, sizeof fifth);
  });
}

}  // namespace

GgmlCodec q4_1_codec() { return {GgmlType::q4_1, decode_q4_1, encode_q4_1}; }
GgmlCodec q5_1_codec() { return {GgmlType::q5_1, decode_q5_1, encode_q5_1}; }

}  // namespace ingot::quant
