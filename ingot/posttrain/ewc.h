#pragma once

#include "ingot/tensor/tensor.h"

namespace ingot {

// Elastic weight consolidation: weights that an old task needs are held where it left them,
//   penalty = λ/2 Σ_i F_i (θ_i − θ*_i)²
// with F the diagonal of the Fisher information at θ*. Kirkpatrick et al. 2017, arXiv:1612.00796,
// equation 3. Some implementations leave out the ½; theirs is this one with 2 λ.

// F of one parameter from gradients of the log-likelihood of N samples: the mean of their squares.
// sample_grads: [N, ...] → [...]
Tensor fisher_diagonal(const Tensor& sample_grads);

// Over parameters theta (with history), old values and Fisher information of the same shapes. → []
Tensor ewc_penalty(const TensorList& theta, const TensorList& old, const TensorList& fisher,
                   double lambda);

}  // namespace ingot
