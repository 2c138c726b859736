#include <cmath>
#include <limits>

#include "ingot/quant/blocks.h"
#include "ingot/quant/ggml_families.h"

// Four-bit floats (1 sign, 2 exponent, 1 fraction bit) under a shared scale. Layout: ggml,
// src/ggml-common.h, block_mxfp4; values: OCP microscaling formats 1.0, sections 5.3 and 5.4.
namespace ingot::quant {
namespace {

constexpr float values_of_code[16] = {0,     0.5,  1,  1.5,  2,  3,  4,  6,
                                      -0.0F, -0.5, -1, -1.5, -2, -3, -4, -6};

// A bare exponent: 2^(code − 127); 255 is NaN.
float exponent_scale(uint32_t code) {
  return code == 255 ? std::numeric_limits<float>::quiet_NaN()
                     : std::ldexp(1.0F, static_cast<int>(code) - 127);
}

// The scale: 1 byte; 16 bytes of two codes: value i of the first 16 shares its byte with i + 16.
void decode_mxfp4(const std::byte* blocks, int64_t values, float* out) {
  each_block<32, 17>(blocks, out, values, [](const std::byte* block, float* y) {
    const float d = exponent_scale(byte_at(block));
    for (int i = 0; i < 16; ++i) {
      const uint32_t pair = byte_at(block + 1 + i);
      y[i] = d * values_of_code[pair & 15U];
      y[i + 16] = d * values_of_code[pair >> 4];
    }
  });
}

}  // namespace

GgmlCodec mxfp4_codec() { return {GgmlType::mxfp4, decode_mxfp4, nullptr}; }

}  // namespace ingot::quant
