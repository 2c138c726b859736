#pragma once

#include "ingot/tensor/tensor.h"

namespace ingot {

// Small dense decompositions, computed in f64; results have the type of a. No gradients. On the
// meta device: the shapes. One thread, so that the bits are the same for any number of them.

// a = V diag(values) Vᵀ of a symmetric a: [N, N], of which the lower triangle is read. O(N³).
// Throws Error(numeric) where a is not finite.
struct SymmetricEigen {
  Tensor values;   // [N], largest first
  Tensor vectors;  // [N, N], a column for each value
};
SymmetricEigen symmetric_eigen(const Tensor& a);
// The values alone, for less.
Tensor symmetric_eigenvalues(const Tensor& a);

// (a + shift·I)^exponent of a symmetric a; eigenvalues below 0, which are rounding, count as 0.
Tensor symmetric_power(const Tensor& a, double shift, double exponent);

// a = Q·R with orthonormal columns in Q: [M, N] and R: [N, N] upper triangular, whose diagonal may
// have either sign. a: [M, N], M ≥ N. Householder's method, so Q is orthonormal whatever the rank
// of a.
struct Qr {
  Tensor q;
  Tensor r;
};
Qr qr(const Tensor& a);

}  // namespace ingot
