#pragma once

#include <cstdint>

#include "ingot/base/half.h"

namespace ingot::kernels {

// Rows of each side that one call multiplies at most.
constexpr int most_dots = 4;

// sums[n][m] = Σ_k a[m][k] b[n · step + k] for `rows` rows of a and `columns` of b, `inner`
// elements each, in f32: two products an instruction, of which subnormal ones count as 0. A sum
// does not depend on how many there are. Only where multiplies_bf16() (dispatch.h).
void bf16_dots(int rows, int columns, const BF16* const* a, const BF16* b, int64_t step,
               int64_t inner, float (*sums)[most_dots]);

}  // namespace ingot::kernels
