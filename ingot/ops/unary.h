#pragma once

#include <functional>

#include "ingot/kernels/elementwise.h"
#include "ingot/tensor/tensor.h"

namespace ingot {

// f'(x) in operations, given what keeps(f) says: the argument or the result.
using Slope = std::function<Tensor(const Tensor& kept)>;

// y = f(x), an entry of kernels/cpu/unary-inl.h. The first derivative is one fused pass; where
// gradients are recorded to be differentiated again it is dy · slope(kept). `op` names it in
// errors.
Tensor unary(const char* op, const kernels::UnaryCall& call, const Tensor& x, const Slope& slope);

}  // namespace ingot
