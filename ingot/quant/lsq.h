#pragma once

#include <cstdint>

#include "ingot/tensor/tensor.h"

namespace ingot::quant {

// Learned step size quantization. Esser et al. 2020, arXiv:1902.08153, equations 1 to 5.
//
//   v̄ = round(clip(v / s, −Qn, Qp)),  v̂ = v̄ · s;   Qn = 2^(b−1), Qp = 2^(b−1) − 1 of b bits, or
//   0 and 2^b − 1 of values that are not negative
//   ∂v̂/∂v = 1 where −Qn ≤ v/s ≤ Qp, else 0
//   ∂v̂/∂s = g · (v̄ − v/s inside, −Qn below, Qp above),  g = 1 / √(N·Qp), N the values of v
//
// v of any shape, step of shape [] or [1], positive. Throws Error(argument) for bounds that are not
// −qn ≤ 0 < qp.
Tensor lsq(const Tensor& v, const Tensor& step, int64_t qn, int64_t qp);

// Where the step starts: 2·mean|v| / √Qp.
double lsq_first_step(const Tensor& v, int64_t qp);

}  // namespace ingot::quant
