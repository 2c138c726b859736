#include "ingot/quant/blocks.h"
#include "ingot/quant/ggml_families.h"

// F32, F16 and BF16: one value a block, no scales; rounding is to nearest, ties to even.
namespace ingot::quant {
namespace {

template <class T>
void decode(const std::byte* blocks, int64_t values, float* out) {
  for (int64_t i = 0; i < values; ++i) {
    T value;
    std::memcpy(&value, blocks + i * static_cast<int64_t>(sizeof(T)), sizeof(T));
    out[i] = static_cast<float>(value);
  }
}

template <class T>
void encode(const float* values, int64_t count, std::byte* blocks) {
  for (int64_t i = 0; i < count; ++i) {
    const auto value = static_cast<T>(values[i]);
    std::memcpy(blocks + i * static_cast<int64_t>(sizeof(T)), &value, sizeof(T));
  }
}

}  // namespace

GgmlCodec f32_codec() { return {GgmlType::f32, decode<float>, encode<float>}; }
GgmlCodec f16_codec() { return {GgmlType::f16, decode<F16>, encode<F16>}; }
GgmlCodec bf16_codec() { return {GgmlType::bf16, decode<BF16>, encode<BF16>}; }

}  // namespace ingot::quant
