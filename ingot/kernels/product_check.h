#pragma once

#include <cstdint>

namespace ingot::kernels {

// Checksums of matrix products: while one lives, every product of this thread (matmul, matmuls) is
// followed by a test of its rows,
//
//   Σ_j y_ij = Σ_k a_ik · (Σ_j b_kj)  [+ Σ_j bias_j]  [+ Σ_j y_ij before],
//
// and where a row does not fit, of its columns, which finds the place. Huang and Abraham 1984,
// "Algorithm-based fault tolerance for matrix operations", IEEE Trans. Computers C-33(6). A row
// fits within what rounding can do to it:
//
//   u·Σ_j |y_ij| + 2^-24·√K·Σ_k |a_ik|·Σ_j |b_kj|,   u = 2^-8 for bf16, 2^-11 for f16, 2^-24 for
//   f32
//
// so that a flip is found which changes a number by more than that: in f32 rows of a thousand
// about a fiftieth of its size, in bf16 about four times it, which the upper bits of its
// exponent do. Sums are taken in f64; they read a, b and y once more.
//
// Throws Error(numeric) with the product's shapes, the row, the column and both sums.
class ProductChecks {
 public:
  ProductChecks();
  ~ProductChecks();
  ProductChecks(const ProductChecks&) = delete;
  ProductChecks& operator=(const ProductChecks&) = delete;
};
bool checking_products();    // of this thread
int64_t products_checked();  // by this thread, ever

// For tests: before its check, the `product`-th product from now on (0: the next) has bit `bit` of
// element `element` of y flipped, counted in memory order from its first.
void plant_flip(int64_t product, int64_t element, int bit);

}  // namespace ingot::kernels
