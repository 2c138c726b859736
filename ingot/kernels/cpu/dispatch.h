#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace ingot::kernels {

// Which instructions the kernels may use, narrowest first. Each includes those before it.
enum class SimdLevel : uint8_t { avx2, avx512, avx512_bf16, amx };
std::string_view name(SimdLevel level);  // "avx512_bf16"
std::optional<SimdLevel> simd_level_named(std::string_view name);

// Keeps Ingot's kernels and oneDNN from using anything wider than `level`; one that the processor
// lacks restricts nothing. Has to come before the first kernel runs: Error(config) if oneDNN has
// already chosen, or was restricted to another level.
void restrict_simd(SimdLevel level);

// The level in force: what the processor has, no wider than restrict_simd has allowed. The first
// call restricts to the environment variable INGOT_SIMD where that is set; programs make it before
// they compute. Error(config) naming a value that is no level.
SimdLevel simd_level();

// Whether the processor multiplies bf16 matrices itself, at twice the rate of f32 or more.
bool multiplies_bf16();

}  // namespace ingot::kernels
