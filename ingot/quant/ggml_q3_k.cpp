#include "ingot/quant/ggml_families.h"
#include "ingot/quant/symmetric_fit.h"

// Q3_K: 256 values in 16 parts of 16, x = d·s·q with s in −32 … 31 and q in −4 … 3. Layout: ggml,
// src/ggml-common.h, block_q3_K: 32 bytes of the codes' third bits (those of the values 32 apart in
// one byte); 64 bytes of the lower two, as in Q2_K; 12 bytes of scales; d: 2 bytes. Codes are
// stored as q + 4, scales as s + 32.
namespace ingot::quant {
namespace {

constexpr int codes_at = 32;
constexpr int scales_at = 96;
constexpr int d_at = 108;

constexpr int byte_of(int i) { return codes_at + i / 128 * 32 + i % 32; }
constexpr int shift_of(int i) { return i % 128 / 32 * 2; }

// Scale `part`: its lower four bits in nibble part / 8 of byte part % 8, its upper two in byte
// 8 + part % 4.
uint32_t stored_scale(const std::byte* scales, int part) {
  const uint32_t lower = byte_at(scales + part % 8) >> (4 * (part / 8)) & 15U;
  const uint32_t upper = byte_at(scales + 8 + part % 4) >> (2 * (part / 4)) & 3U;
  return lower | upper << 4;
}

void store_scale(uint32_t stored, int part, std::byte* scales) {
  scales[part % 8] |= low_byte((stored & 15U) << (4 * (part / 8)));
  scales[8 + part % 4] |= low_byte(stored >> 4 << (2 * (part / 4)));
}

void decode_q3_k(const std::byte* blocks, int64_t values, float* out) {
  each_block<256, 110>(blocks, out, values, [](const std::byte* block, float* y) {
    const float d = half_at(block + d_at);
    for (int part = 0; part < 16; ++part) {
      const float scale =
          d * static_cast<float>(static_cast<int>(stored_scale(block + scales_at, part)) - 32);
      const int first = 16 * part;
      const int shift = shift_of(first);
      for (int i = 0; i < 16; ++i) {
        const uint32_t lower = byte_at(block + byte_of(first) + i) >> shift & 3U;
        const uint32_t third = byte_at(block + first % 32 + i) >> (first / 32) & 1U;
        y[first + i] = scale * static_cast<float>(static_cast<int>(lower | third << 2) - 4);
      }
    }
  });
}

void encode_q3_k(const float* values, int64_t count, std::byte* blocks) {
  using Grid = EvenGrid<-4, 3>;
  each_block<256, 110>(blocks, values, count, [](std::byte* block, const float* x) {
    const auto fit = fit_shared<Grid, 16, 16>(x, -32, 31, 8);
    std::fill(block, block + d_at, std::byte{0});
    put_half(fit.d, block + d_at);
    for (int part = 0; part < 16; ++part) {
      store_scale(static_cast<uint32_t>(fit.s[part] + 32), part, block + scales_at);
      const float inverse = inverse_of(fit.d * static_cast<float>(fit.s[part]));
      for (int i = 16 * part; i < 16 * part + 16; ++i) {
        const auto code =
            static_cast<uint32_t>(static_cast<int>(Grid::nearest(x[i] * inverse)) + 4);
        block[byte_of(i)] |= low_byte((code & 3U) << shift_of(i));
        block[i % 32] |= low_byte(code >> 2 << (i / 32));
      }
    }
  });
}

}  // namespace

GgmlCodec q3_k_codec() { return {GgmlType::q3_k, decode_q3_k, encode_q3_k}; }

}  // namespace ingot::quant
