#pragma once

#include "ingot/tensor/tensor.h"

namespace ingot {

// The odd polynomial of Jordan et al. 2024: p(s) = a·s + b·s³ + c·s⁵, steep at 0.
struct NewtonSchulz {
  int64_t steps = 5;
  double eps = 1e-7;
  double a = 3.4445;
  double b = -4.7750;
  double c = 2.0315;
};

// Moves the singular values s of a matrix g towards 1 by applying p to s/‖g‖_F `steps` times, and
// leaves its singular vectors:  X = g / (‖g‖_F + eps);  X ← a·X + (b·A + c·A²)·X,  A = X·Xᵀ
// Computed in `dtype` (bf16, f32 or f64), on the shorter side; dense, of g's type. After five steps
// those above 0.01 of the norm lie in about [0.7, 1.2]. g: [M, N], f32 or f64; 4·steps·M·N·min +
// … FLOPs. Jordan et al. 2024, "Muon: an optimizer for hidden layers in neural networks".
Tensor orthogonalised(const Tensor& g, const NewtonSchulz& numbers, DType dtype);

}  // namespace ingot
