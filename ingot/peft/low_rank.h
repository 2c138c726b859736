#pragma once

#include "ingot/tensor/tensor.h"

namespace ingot::peft {

// W ≈ U diag(s) Vᵀ with the k largest singular values.
struct Svd {
  Tensor u;  // [Out, k]
  Tensor s;  // [k], largest first
  Tensor v;  // [In, k]
};

// The best approximation of rank k in the Frobenius norm (Eckart & Young 1936), in f64 whatever the
// type of w. w: [Out, In], k ≤ min(Out, In). From the eigenvectors of w wᵀ (or wᵀw, the smaller)
// where the smaller side has up to 256 rows; beyond by subspace iteration from random vectors
// (Halko, Martinsson & Tropp 2011, arXiv:0909.4061, algorithm 4.4), whose error after 8 rounds is
// far below what quantization or training move.
Svd truncated_svd(const Tensor& w, int64_t k);

// A map's weight as what is frozen and what is trained: W ≈ rest + scaling · B A.
struct LowRankStart {
  Tensor a;            // [r, In] f64
  Tensor b;            // [Out, r] f64
  Tensor rest;         // [Out, In] f64
  Tensor unrounded{};  // what `rest` was rounded from, where it was
};

// A and B take the r principal components, the frozen weight keeps the others:
//   A = √(S/scaling) Vᵀ,  B = U √(S/scaling),  rest = W − scaling · B A
// Meng, Wang & Zhang 2024, arXiv:2404.02948, equations 2 to 4.
LowRankStart pissa(const Tensor& w, int64_t rank, double scaling);

// Rounding R = W to NF4 and fitting what that lost, in turns:
//   Q = NF4(R),  L = best approximation of W − Q of rank r,  R = W − L
// The last Q is `rest`, in the values that its codes stand for, and scaling · B A the last L. Li et
// al. 2023, arXiv:2310.08659, algorithm 1. Blocks of the row-major weight.
struct LoftqOptions {
  int64_t rank = 8;
  double scaling = 1;
  int64_t iterations = 4;
  int64_t block = 64;
  bool double_scales = false;  // magnitudes of blocks in 8 bits, as QLoRA keeps them
};
LowRankStart loftq(const Tensor& w, const LoftqOptions& options);

}  // namespace ingot::peft
