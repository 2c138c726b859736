#include "ingot/quant/affine_fit.h"
#include "ingot/quant/ggml_families.h"

// Q2_K: 256 values in 16 parts of 16, x = d·s·q − m·o with four-bit s and o and two-bit q. Layout:
// ggml, src/ggml-common.h, block_q2_K: 16 bytes of s (low) and o (high); 64 bytes of codes, each
// with those of the values 32 apart within 128; d and m: 2 bytes each.
namespace ingot::quant {
namespace {

constexpr int codes_at = 16;
constexpr int d_at = 80;
constexpr int m_at = 82;

// Byte and shift of value i's code.
constexpr int byte_of(int i) { return codes_at + i / 128 * 32 + i % 32; }
constexpr int shift_of(int i) { return i % 128 / 32 * 2; }

void decode_q2_k(const std::byte* blocks, int64_t values, float* out) {
  each_block<256, 84>(blocks, out, values, [](const std::byte* block, float* y) {
    const float d = half_at(block + d_at);
    const float m = half_at(block + m_at);
    for (int part = 0; part < 16; ++part) {
      const uint32_t both = byte_at(block + part);
      const float scale = d * static_cast<float>(both & 15U);
      const float offset = m * static_cast<float>(both >> 4);
      const std::byte* codes = block + byte_of(16 * part);
      const int shift = shift_of(16 * part);
      for (int i = 0; i < 16; ++i) {
        y[16 * part + i] = scale * static_cast<float>(byte_at(codes + i) >> shift & 3U) - offset;
      }
    }
  });
}

void encode_q2_k(const float* values, int64_t count, std::byte* blocks) {
  each_block<256, 84>(blocks, values, count, [](std::byte* block, const float* x) {
    const auto fit = fit_shared_affine<3, 16, 16>(x, 15, 16);
    put_half(fit.d, block + d_at);
    put_half(fit.m, block + m_at);
    std::fill(block + codes_at, block + d_at, std::byte{0});
    for (int part = 0; part < 16; ++part) {
      block[part] =
          low_byte(static_cast<uint32_t>(fit.s[part]) | static_cast<uint32_t>(fit.o[part]) << 4);
      const float inverse = inverse_of(fit.d * static_cast<float>(fit.s[part]));
      const float offset = -fit.m * static_cast<float>(fit.o[part]);
      for (int i = 16 * part; i < 16 * part + 16; ++i) {
        const auto code = static_cast<uint32_t>(code_of<3>(x[i], inverse, offset));
        block[byte_of(i)] |= low_byte(code << shift_of(i));
      }
    }
  });
}

}  // namespace

GgmlCodec q2_k_codec() { return {GgmlType::q2_k, decode_q2_k, encode_q2_k}; }

}  // namespace ingot::quant
