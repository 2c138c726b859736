#include "ingot/kernels/cpu/dispatch.h"

#include <hwy/targets.h>

#include <array>
#include <cstdlib>
#include <oneapi/dnnl/dnnl.hpp>
#include <utility>

#include "ingot/base/error.h"

namespace ingot::kernels {
namespace {

struct LevelRow {
  SimdLevel level;
  std::string_view name;
  dnnl::cpu_isa isa;
};

constexpr std::array<LevelRow, 4> levels{{
    {SimdLevel::avx2, "avx2", dnnl::cpu_isa::avx2},
    {SimdLevel::avx512, "avx512", dnnl::cpu_isa::avx512_core_vnni},
    {SimdLevel::avx512_bf16, "avx512_bf16", dnnl::cpu_isa::avx512_core_bf16},
    {SimdLevel::amx, "amx", dnnl::cpu_isa::avx512_core_amx},
}};

// oneDNN's instruction sets are bit sets: a wider one has all bits of a narrower one.
bool includes(dnnl::cpu_isa wide, dnnl::cpu_isa narrow) {
  const auto bits = static_cast<uint32_t>(narrow);
  return (static_cast<uint32_t>(wide) & bits) == bits;
}

SimdLevel widest() {
  const dnnl::cpu_isa isa = dnnl::get_effective_cpu_isa();
  SimdLevel found = SimdLevel::avx2;
  for (const LevelRow& row : levels) {
    if (includes(isa, row.isa)) {
      found = row.level;
    }
  }
  return found;
}

bool restrict_to_environment() {
  const char* value = std::getenv("INGOT_SIMD");
  if (value != nullptr && *value != '\0') {
    const std::optional<SimdLevel> level = simd_level_named(value);
    check(level.has_value(), ErrorKind::config, "INGOT_SIMD: no such level: got \"", value,
          "\"; it takes avx2, avx512, avx512_bf16 or amx");
    restrict_simd(*level);
  }
  return true;
}

}  // namespace

std::string_view name(SimdLevel level) { return levels[static_cast<size_t>(level)].name; }

std::optional<SimdLevel> simd_level_named(std::string_view name) {
  for (const LevelRow& row : levels) {
    if (row.name == name) {
      return row.level;
    }
  }
  return std::nullopt;
}

void restrict_simd(SimdLevel level) {
  const dnnl::cpu_isa isa = levels[static_cast<size_t>(level)].isa;
  check(dnnl::set_max_cpu_isa(isa) == dnnl::status::success, ErrorKind::config,
        "simd: too late to restrict to ", name(level),
        ": kernels have run already; restrict before computing");
  if (level == SimdLevel::avx2) {
    // Highway numbers its targets so that a better one has a lower bit.
    hwy::DisableTargets(HWY_AVX2 - 1);
  }
}

SimdLevel simd_level() {
  static const bool once = restrict_to_environment();
  static_cast<void>(once);
  return widest();
}

bool multiplies_bf16() {
  static const bool found = simd_level() >= SimdLevel::avx512_bf16;
  return found;
}

}  // namespace ingot::kernels
