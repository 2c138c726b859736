#pragma once

#include "ingot/tensor/tensor.h"

namespace ingot {

// Small dense decompositions, computed in f64; results have the type of a. On the meta device: the
// shapes. a: [N, N], symmetric; its lower triangle is read. O(N³), one thread.

// (a + shift·I)^exponent; eigenvalues below 0, which are rounding, count as 0.
Tensor symmetric_power(const Tensor& a, double shift, double exponent);
// The eigenvectors as columns, by falling eigenvalue.
Tensor eigenvectors(const Tensor& a);
// The orthogonal factor Q of a = Q·R, any square a.
Tensor orthogonal_factor(const Tensor& a);

}  // namespace ingot
