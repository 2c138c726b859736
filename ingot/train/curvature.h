#pragma once

#include "ingot/train/train.h"

namespace ingot {

// Gives the optimizer its rule's estimate of the diagonal of the Hessian of the mean loss, from the
// first micro-batch of the step that begins at `state`:
//
//   drawn_labels  n·ĝ², ĝ the gradient of the mean loss over the batch's n tokens with labels that
//                 the model draws (Gauss-Newton-Bartlett; Liu et al. 2023, arXiv:2305.14342,
//                 Algorithm 2)
//   hutchinson    u ⊙ (∇L(w + εu) − ∇L(w − εu)) / 2ε, u of the standard normal distribution (the
//                 same, Algorithm 1; Hutchinson 1989), ε = 0.02·√(Σw²/N), at least 1e-4. The paper
//                 differentiates twice; the difference is exact but for rounding where L is of the
//                 third degree or less, and needs no second derivative. Weights come back bit for
//                 bit. Takes f32 or f64 weights: an ε of bf16's spacing would be no small step.
//
// Throws Error(config) where the objective cannot draw labels, or weights are half-precision.
void observe_curvature(TrainState state, Training& training);

}  // namespace ingot
