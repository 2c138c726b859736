#include "ingot/quant/ggml_families.h"
#include "ingot/quant/symmetric_fit.h"

// One half scale d for 32 values: x = d·q. Layouts: ggml, src/ggml-common.h, block_q4_0, block_q5_0
// and block_q8_0. Value i of the first 16 shares its byte with value i + 16.
namespace ingot::quant {
namespace {

constexpr int values_in_block = 32;
constexpr int half_block = 16;

template <class Grid>
float block_scale(const float* x) {
  const float half = best_half<Grid, values_in_block>(x, best_scale<Grid, values_in_block>(x, 6));
  // The plain scale, so that rounding to a half can never make the search end worse than it.
  const float plain = rounded_to_half(outermost<values_in_block>(x) / Grid::low);
  return squared_error<Grid, values_in_block>(x, plain) <
                 squared_error<Grid, values_in_block>(x, half)
             ? plain
             : half;
}

template <class Grid>
uint32_t code(float x, float inverse) {
  return static_cast<uint32_t>(static_cast<int>(Grid::nearest(x * inverse) - Grid::low));
}

// d: 2 bytes; 16 bytes of two codes, stored as q + 8.
void decode_q4_0(const std::byte* blocks, int64_t values, float* out) {
  each_block<32, 18>(blocks, out, values, [](const std::byte* block, float* y) {
    const float d = half_at(block);
    for (int i = 0; i < half_block; ++i) {
      const uint32_t pair = byte_at(block + 2 + i);
      y[i] = d * static_cast<float>(static_cast<int>(pair & 15U) - 8);
      y[i + half_block] = d * static_cast<float>(static_cast<int>(pair >> 4) - 8);
    }
  });
}

void encode_q4_0(const float* values, int64_t count, std::byte* blocks) {
  using Grid = EvenGrid<-8, 7>;
  each_block<32, 18>(blocks, values, count, [](std::byte* block, const float* x) {
    const float d = block_scale<Grid>(x);
    const float inverse = inverse_of(d);
    put_half(d, block);
    for (int i = 0; i < half_block; ++i) {
      block[2 + i] =
          low_byte(code<Grid>(x[i], inverse) | code<Grid>(x[i + half_block], inverse) << 4);
    }
  });
}

// d: 2 bytes; the fifth bits of the 32 codes: 4 bytes; the lower four: 16 bytes. Stored as q + 16.
void decode_q5_0(const std::byte* blocks, int64_t values, float* out) {
  each_block<32, 22>(blocks, out, values, [](const std::byte* block, float* y) {
    const float d = half_at(block);
    uint32_t fifth = 0;
    std::memcpy(&fifth, block + 2, sizeof fifth);
    for (int i = 0; i < half_block; ++i) {
      const uint32_t pair = byte_at(block + 6 + i);
      const uint32_t first = (pair & 15U) | ((fifth >> i & 1U) << 4);
      const uint32_t second = (pair >> 4) | ((fifth >> (i + half_block) & 1U) << 4);
      y[i] = d * static_cast<float>(static_cast<int>(first) - 16);
      y[i + half_block] = d * static_cast<float>(static_cast<int>(second) - 16);
    }
  });
}

void encode_q5_0(const float* values, int64_t count, std::byte* blocks) {
  using Grid = EvenGrid<-16, 15>;
  each_block<32, 22>(blocks, values, count, [](std::byte* block, const float* x) {
    const float d = block_scale<Grid>(x);
    const float inverse = inverse_of(d);
    put_half(d, block);
    uint32_t fifth = 0;
    for (int i = 0; i < half_block; ++i) {
      const uint32_t first = code<Grid>(x[i], inverse);
      const uint32_t second = code<Grid>(x[i + half_block], inverse);
      block[6 + i] = low_byte((first & 15U) | (second & 15U) << 4);
      fifth |= first >> 4 << i | second >> 4 << (i + half_block);
    }
    std::memcpy(block + 2, &fifth, sizeof fifth);
  });
}

// d: 2 bytes; 32 signed bytes. −128 is never written: kernels negate codes.
void decode_q8_0(const std::byte* blocks, int64_t values, float* out) {
  each_block<32, 34>(blocks, out, values, [](const std::byte* block, float* y) {
    const float d = half_at(block);
    for (int i = 0; i < values_in_block; ++i) {
      y[i] = d * static_cast<float>(static_cast<int8_t>(block[2 + i]));
    }
  });
}

void encode_q8_0(const float* values, int64_t count, std::byte* blocks) {
  using Grid = EvenGrid<-127, 127>;
  each_block<32, 34>(blocks, values, count, [](std::byte* block, const float* x) {
    const float d = block_scale<Grid>(x);
    const float inverse = inverse_of(d);
    put_half(d, block);
    for (int i = 0; i < values_in_block; ++i) {
      block[2 + i] = static_cast<std::byte>(static_cast<int8_t>(Grid::nearest(x[i] * inverse)));
    }
  });
}

}  // namespace

GgmlCodec q4_0_codec() { return {GgmlType::q4_0, decode_q4_0, encode_q4_0}; }
GgmlCodec q5_0_codec() { return {GgmlType::q5_0, decode_q5_0, encode_q5_0}; }
GgmlCodec q8_0_codec() { return {GgmlType::q8_0, decode_q8_0, encode_q8_0}; }

}  // namespace ingot::quant
