#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "ingot/base/ggml_type.h"

namespace ingot::quant {

// How the blocks of one GGUF type are read and written. `values` is a whole number of blocks. Both
// work on one thread; decode_values and encode_values below share the work out.
struct GgmlCodec {
  GgmlType type;
  void (*decode)(const std::byte* blocks, int64_t values, float* out);
  // Null where Ingot only reads the type. Picks the scales with the least squared error that its
  // search finds; takes finite values within ±65504, which decode_values and encode_values check.
  void (*encode)(const float* values, int64_t count, std::byte* blocks);
};

// The types that have a codec (ggml_table.cpp), by number.
std::span<const GgmlCodec> ggml_codecs();
// Throws Error(dtype) naming the types there are.
const GgmlCodec& codec_of(GgmlType type);

// The values of `blocks`, exactly as ggml's dequantize_row functions compute them. Throws
// Error(numeric) with the index of a value that is not finite, where the type has scales: there is
// no reading a block whose scale is NaN. F32, F16 and BF16 keep such values.
void decode_values(GgmlType type, std::span<const std::byte> blocks, std::span<float> out);

// The reverse, rounded to the type. Throws Error(numeric) with the index of a value that the type
// cannot hold: NaN, infinite or beyond ±65504 for types with scales, beyond f16's range for F16.
void encode_values(GgmlType type, std::span<const float> values, std::span<std::byte> blocks);

}  // namespace ingot::quant
