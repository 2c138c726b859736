#pragma once

#include "ingot/tensor/tensor.h"

namespace ingot {

// y_d = exp(x_d − max x) / Σ_e exp(x_e − max x), over the last dimension; summed in f32 for half
// types. Twice differentiable.
Tensor softmax(const Tensor& x);

// y_d = x_d − logsumexp(x), over the last dimension. Twice differentiable.
Tensor log_softmax(const Tensor& x);

}  // namespace ingot
