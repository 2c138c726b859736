#include <algorithm>
#include <cmath>
#include <string>

#include "ingot/base/error.h"
#include "ingot/kernels/cpu/parallel.h"
#include "ingot/quant/ggml_families.h"

namespace ingot::quant {
namespace {

constexpr int64_t values_at_once = 1 << 15;  // a whole number of blocks of every type

bool has_scales(GgmlType type) { return layout_of(type).block_values > 1; }

// The index of the first value beyond ±limit, NaN included; `count` where there is none.
int64_t first_beyond(const float* values, int64_t count, float limit) {
  float most = 0;
  bool ordered = true;
  for (int64_t i = 0; i < count; ++i) {
    most = std::max(most, std::abs(values[i]));
    ordered &= values[i] == values[i];
  }
  if (ordered && most <= limit) {
    return count;
  }
  return std::find_if(values, values + count,
                      [&](float value) { return !(std::abs(value) <= limit); }) -
         values;
}

void check_sizes(const GgmlLayout& layout, size_t values, size_t bytes) {
  const int64_t expected = bytes_of(layout.type, static_cast<int64_t>(values));
  check(static_cast<int64_t>(bytes) == expected, ErrorKind::shape, layout.name, ": ", values,
        " values take ", expected, " bytes: got ", bytes);
}

}  // namespace

std::span<const GgmlCodec> ggml_codecs() {
  static const GgmlCodec table[] = {f32_codec(),    f16_codec(),    q4_0_codec(), q4_1_codec(),
                                    q5_0_codec(),   q5_1_codec(),   q8_0_codec(), q2_k_codec(),
                                    q3_k_codec(),   q4_k_codec(),   q5_k_codec(), q6_k_codec(),
                                    iq4_nl_codec(), iq4_xs_codec(), bf16_codec(), mxfp4_codec()};
  return table;
}

const GgmlCodec& codec_of(GgmlType type) {
  std::string all;
  for (const GgmlCodec& one : ggml_codecs()) {
    if (one.type == type) {
      return one;
    }
    all += (all.empty() ? "" : ", ") + std::string(name(one.type));
  }
  throw Error(ErrorKind::dtype,
              concat(name(type), ": Ingot does not read this type; it reads ", all));
}

void decode_values(GgmlType type, std::span<const std::byte> blocks, std::span<float> out) {
  const GgmlCodec& codec = codec_of(type);
  const GgmlLayout& layout = layout_of(type);
  check_sizes(layout, out.size(), blocks.size());
  const auto count = static_cast<int64_t>(out.size());
  kernels::parallel_for(count, values_at_once, [&](int64_t begin, int64_t end) {
    const std::byte* from = blocks.data() + begin / layout.block_values * layout.block_bytes;
    codec.decode(from, end - begin, out.data() + begin);
    if (!has_scales(type)) {
      return;
    }
    const int64_t wrong = first_beyond(out.data() + begin, end - begin, 3.4e38F);
    check(wrong == end - begin, ErrorKind::numeric, layout.name, ": value ", begin + wrong,
          " is not finite: the scale of its block is NaN or infinite; the file is damaged");
  });
}

void encode_values(GgmlType type, std::span<const float> values, std::span<std::byte> blocks) {
  const GgmlCodec& codec = codec_of(type);
  const GgmlLayout& layout = layout_of(type);
  check(codec.encode != nullptr, ErrorKind::dtype, layout.name,
        ": Ingot reads this type and does not write it");
  check_sizes(layout, values.size(), blocks.size());
  const auto count = static_cast<int64_t>(values.size());
  const bool bounded = has_scales(type) || type == GgmlType::f16;
  kernels::parallel_for(count, values_at_once, [&](int64_t begin, int64_t end) {
    const float* from = values.data() + begin;
    const int64_t wrong = bounded ? first_beyond(from, end - begin, 65504.0F) : end - begin;
    check(wrong == end - begin, ErrorKind::numeric, layout.name, ": value ", begin + wrong,
          " cannot be stored: it is ", wrong == end - begin ? 0.0F : from[wrong],
          ", allowed are finite numbers within 65504 of 0");
    codec.encode(from, end - begin,
                 blocks.data() + begin / layout.block_values * layout.block_bytes);
  });
}

}  // namespace ingot::quant
