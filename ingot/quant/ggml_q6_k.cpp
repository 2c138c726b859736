#include "ingot/quant/ggml_families.h"
#include "ingot/quant/symmetric_fit.h"

// Q6_K: 256 values in 16 parts of 16, x = d·s·q with s in −128 … 127 and q in −32 … 31. Layout:
// ggml, src/ggml-common.h, block_q6_K: 128 bytes of the codes' lower four bits (those of values 64
// apart in the nibbles of one byte), 64 bytes of their upper two (values 32 apart within 128), 16
// signed bytes of scales; d: 2 bytes. Codes are stored as q + 32.
namespace ingot::quant {
namespace {

constexpr int upper_at = 128;
constexpr int scales_at = 192;
constexpr int d_at = 208;

constexpr int lower_byte(int i) { return i / 128 * 64 + i % 64; }
constexpr int lower_shift(int i) { return i % 128 / 64 * 4; }
constexpr int upper_byte(int i) { return upper_at + i / 128 * 32 + i % 32; }
constexpr int upper_shift(int i) { return i % 128 / 32 * 2; }

void decode_q6_k(const std::byte* blocks, int64_t values, float* out) {
  each_block<256, 210>(blocks, out, values, [](const std::byte* block, float* y) {
    const float d = half_at(block + d_at);
    for (int part = 0; part < 16; ++part) {
      const float scale = d * static_cast<float>(static_cast<int8_t>(block[scales_at + part]));
      const int first = 16 * part;
      for (int i = 0; i < 16; ++i) {
        const uint32_t lower = byte_at(block + lower_byte(first) + i) >> lower_shift(first) & 15U;
        const uint32_t upper = byte_at(block + upper_byte(first) + i) >> upper_shift(first) & 3U;
        y[first + i] = scale * static_cast<float>(static_cast<int>(lower | upper << 4) - 32);
      }
    }
  });
}

void encode_q6_k(const float* values, int64_t count, std::byte* blocks) {
  using Grid = EvenGrid<-32, 31>;
  each_block<256, 210>(blocks, values, count, [](std::byte* block, const float* x) {
    const auto fit = fit_shared<Grid, 16, 16>(x, -128, 127, 4);
    std::fill(block, block + scales_at, std::byte{0});
    put_half(fit.d, block + d_at);
    for (int part = 0; part < 16; ++part) {
      block[scales_at + part] = static_cast<std::byte>(static_cast<int8_t>(fit.s[part]));
      const float inverse = inverse_of(fit.d * static_cast<float>(fit.s[part]));
      for (int i = 16 * part; i < 16 * part + 16; ++i) {
        const auto code =
            static_cast<uint32_t>(static_cast<int>(Grid::nearest(x[i] * inverse)) + 32);
        block[lower_byte(i)] |= low_byte((code & 15U) << lower_shift(i));
        block[upper_byte(i)] |= low_byte(code >> 4 << upper_shift(i));
      }
    }
  });
}

}  // namespace

GgmlCodec q6_k_codec() { return {GgmlType::q6_k, decode_q6_k, encode_q6_k}; }

}  // namespace ingot::quant
