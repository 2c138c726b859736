#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace ingot {

// The element types of GGUF files, by the numbers the files use. Most are blocks: a fixed number of
// values packed into a fixed number of bytes (ggml: src/ggml-common.h). How a block is read is
// quant's business; how long it is, io's too.
enum class GgmlType : uint32_t {
  f32 = 0,
  f16 = 1,
  q4_0 = 2,
  q4_1 = 3,
  q5_0 = 6,
  q5_1 = 7,
  q8_0 = 8,
  q8_1 = 9,
  q2_k = 10,
  q3_k = 11,
  q4_k = 12,
  q5_k = 13,
  q6_k = 14,
  q8_k = 15,
  iq2_xxs = 16,
  iq2_xs = 17,
  iq3_xxs = 18,
  iq1_s = 19,
  iq4_nl = 20,
  iq3_s = 21,
  iq2_s = 22,
  iq4_xs = 23,
  i8 = 24,
  i16 = 25,
  i32 = 26,
  i64 = 27,
  f64 = 28,
  iq1_m = 29,
  bf16 = 30,
  tq1_0 = 34,
  tq2_0 = 35,
  mxfp4 = 39,
  nvfp4 = 40,
};

struct GgmlLayout {
  GgmlType type;
  std::string_view name;  // "Q4_K"
  int64_t block_values;
  int64_t block_bytes;
};

std::span<const GgmlLayout> ggml_layouts();  // of every type there is, by number
// Null for a number that no type has.
const GgmlLayout* ggml_layout_numbered(uint32_t number);
const GgmlLayout& layout_of(GgmlType type);
std::string_view name(GgmlType type);
// Upper and lower case are the same: "q4_k" is Q4_K.
std::optional<GgmlType> ggml_type_named(std::string_view name);

// Bytes of `values` values, which must be whole blocks and few enough that the product fits.
int64_t bytes_of(GgmlType type, int64_t values);

}  // namespace ingot
