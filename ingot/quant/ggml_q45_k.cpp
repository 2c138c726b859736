#include "ingot/quant/affine_fit.h"
#include "ingot/quant/ggml_families.h"

// Q4_K and Q5_K: 256 values in 8 parts of 32, x = d·s·q − m·o with six-bit s and o. Layouts: ggml,
// src/ggml-common.h, block_q4_K and block_q5_K: d and m: 2 bytes each; 12 bytes of s and o; Q5_K:
// 32 bytes of the codes' fifth bits, part p's in bit p; 128 bytes of the lower four, those of parts
// 2k and 2k + 1 in the nibbles of one byte.
namespace ingot::quant {
namespace {

constexpr int scales_at = 4;
constexpr int after_scales = 16;

struct Pair {
  uint32_t s;
  uint32_t o;
};

// Parts 0 … 3 have s in the lower six bits of bytes 0 … 3 and o in those of bytes 4 … 7. Of parts
// 4 … 7 bytes 8 … 11 hold the lower four bits, and the upper two bits of bytes 0 … 7 the others.
Pair stored_pair(const std::byte* scales, int part) {
  if (part < 4) {
    return {byte_at(scales + part) & 63U, byte_at(scales + part + 4) & 63U};
  }
  const uint32_t lower = byte_at(scales + part + 4);
  return {(lower & 15U) | byte_at(scales + part - 4) >> 6 << 4,
          lower >> 4 | byte_at(scales + part) >> 6 << 4};
}

void store_pair(Pair pair, int part, std::byte* scales) {
  if (part < 4) {
    scales[part] |= low_byte(pair.s);
    scales[part + 4] |= low_byte(pair.o);
    return;
  }
  scales[part + 4] |= low_byte((pair.s & 15U) | (pair.o & 15U) << 4);
  scales[part - 4] |= low_byte(pair.s >> 4 << 6);
  scales[part] |= low_byte(pair.o >> 4 << 6);
}

// `fifth` is null in Q4_K.
void decode_block(const std::byte* block, const std::byte* fifth, const std::byte* codes,
                  float* y) {
  const float d = half_at(block);
  const float m = half_at(block + 2);
  for (int part = 0; part < 8; ++part) {
    const auto [s, o] = stored_pair(block + scales_at, part);
    const float scale = d * static_cast<float>(s);
    const float offset = m * static_cast<float>(o);
    const int shift = 4 * (part % 2);
    for (int i = 0; i < 32; ++i) {
      const uint32_t lower = byte_at(codes + 32 * (part / 2) + i) >> shift & 15U;
      const uint32_t upper = fifth == nullptr ? 0U : (byte_at(fifth + i) >> part & 1U) << 4;
      y[32 * part + i] = scale * static_cast<float>(lower | upper) - offset;
    }
  }
}

template <int top>
void encode_block(const float* x, std::byte* block, std::byte* fifth, std::byte* codes) {
  const auto fit = fit_shared_affine<top, 8, 32>(x, 63, 10);
  std::fill(block, codes + 128, std::byte{0});
  put_half(fit.d, block);
  put_half(fit.m, block + 2);
  for (int part = 0; part < 8; ++part) {
    store_pair({static_cast<uint32_t>(fit.s[part]), static_cast<uint32_t>(fit.o[part])}, part,
               block + scales_at);
    const float inverse = inverse_of(fit.d * static_cast<float>(fit.s[part]));
    const float offset = -fit.m * static_cast<float>(fit.o[part]);
    for (int i = 0; i < 32; ++i) {
      const auto code = static_cast<uint32_t>(code_of<top>(x[32 * part + i], inverse, offset));
      codes[32 * (part / 2) + i] |= low_byte((code & 15U) << (4 * (part % 2)));
      if (fifth != nullptr) {
        fifth[i] |= low_byte(code >> 4 << part);
      }
    }
  }
}

void decode_q4_k(const std::byte* blocks, int64_t values, float* out) {
  each_block<256, 144>(blocks, out, values, [](const std::byte* block, float* y) {
    decode_block(block, nullptr, block + after_scales, y);
  });
}

void encode_q4_k(const float* values, int64_t count, std::byte* blocks) {
  each_block<256, 144>(blocks, values, count, [](std::byte* block, const float* x) {
    encode_block<15>(x, block, nullptr, block + after_scales);
  });
}

void decode_q5_k(const std::byte* blocks, int64_t values, float* out) {
  each_block<256, 176>(blocks, out, values, [](const std::byte* block, float* y) {
    decode_block(block, block + after_scales, block + after_scales + 32, y);
  });
}

void encode_q5_k(const float* values, int64_t count, std::byte* blocks) {
  each_block<256, 176>(blocks, values, count, [](std::byte* block, const float* x) {
    encode_block<31>(x, block, block + after_scales, block + after_scales + 32);
  });
}

}  // namespace

GgmlCodec q4_k_codec() { return {GgmlType::q4_k, decode_q4_k, encode_q4_k}; }
GgmlCodec q5_k_codec() { return {GgmlType::q5_k, decode_q5_k, encode_q5_k}; }

}  // namespace ingot::quant
