#include "ingot/base/ggml_type.h"

#include <algorithm>
#include <array>
#include <cctype>

#include "ingot/base/error.h"

namespace ingot {
namespace {

constexpr std::array<GgmlLayout, 33> layouts = {{
    {GgmlType::f32, "F32", 1, 4},
    {GgmlType::f16, "F16", 1, 2},
    {GgmlType::q4_0, "Q4_0", 32, 18},
    {GgmlType::q4_1, "Q4_1", 32, 20},
    {GgmlType::q5_0, "Q5_0", 32, 22},
    {GgmlType::q5_1, "Q5_1", 32, 24},
    {GgmlType::q8_0, "Q8_0", 32, 34},
    {GgmlType::q8_1, "Q8_1", 32, 36},
    {GgmlType::q2_k, "Q2_K", 256, 84},
    {GgmlType::q3_k, "Q3_K", 256, 110},
    {GgmlType::q4_k, "Q4_K", 256, 144},
    {GgmlType::q5_k, "Q5_K", 256, 176},
    {GgmlType::q6_k, "Q6_K", 256, 210},
    {GgmlType::q8_k, "Q8_K", 256, 292},
    {GgmlType::iq2_xxs, "IQ2_XXS", 256, 66},
    {GgmlType::iq2_xs, "IQ2_XS", 256, 74},
    {GgmlType::iq3_xxs, "IQ3_XXS", 256, 98},
    {GgmlType::iq1_s, "IQ1_S", 256, 50},
    {GgmlType::iq4_nl, "IQ4_NL", 32, 18},
    {GgmlType::iq3_s, "IQ3_S", 256, 110},
    {GgmlType::iq2_s, "IQ2_S", 256, 82},
    {GgmlType::iq4_xs, "IQ4_XS", 256, 136},
    {GgmlType::i8, "I8", 1, 1},
    {GgmlType::i16, "I16", 1, 2},
    {GgmlType::i32, "I32", 1, 4},
    {GgmlType::i64, "I64", 1, 8},
    {GgmlType::f64, "F64", 1, 8},
    {GgmlType::iq1_m, "IQ1_M", 256, 56},
    {GgmlType::bf16, "BF16", 1, 2},
    {GgmlType::tq1_0, "TQ1_0", 256, 54},
    {GgmlType::tq2_0, "TQ2_0", 256, 66},
    {GgmlType::mxfp4, "MXFP4", 32, 17},
    {GgmlType::nvfp4, "NVFP4", 64, 36},
}};

bool same_word(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](char x, char y) {
    return std::toupper(static_cast<unsigned char>(x)) ==
           std::toupper(static_cast<unsigned char>(y));
  });
}

}  // namespace

std::span<const GgmlLayout> ggml_layouts() { return layouts; }

const GgmlLayout* ggml_layout_numbered(uint32_t number) {
  const auto* at = std::find_if(layouts.begin(), layouts.end(), [&](const GgmlLayout& one) {
    return static_cast<uint32_t>(one.type) == number;
  });
  return at == layouts.end() ? nullptr : at;
}

const GgmlLayout& layout_of(GgmlType type) {
  const GgmlLayout* layout = ggml_layout_numbered(static_cast<uint32_t>(type));
  check(layout != nullptr, ErrorKind::internal, "ggml: no type has the number ",
        static_cast<uint32_t>(type));
  return *layout;
}

std::string_view name(GgmlType type) { return layout_of(type).name; }

std::optional<GgmlType> ggml_type_named(std::string_view name) {
  for (const GgmlLayout& one : layouts) {
    if (same_word(one.name, name)) {
      return one.type;
    }
  }
  return std::nullopt;
}

int64_t bytes_of(GgmlType type, int64_t values) {
  const GgmlLayout& layout = layout_of(type);
  check(values >= 0 && values % layout.block_values == 0, ErrorKind::shape, layout.name,
        ": holds whole blocks of ", layout.block_values, " values: got ", values);
  return values / layout.block_values * layout.block_bytes;
}

}  // namespace ingot
