#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "ingot/tensor/tensor.h"

namespace ingot {

// The singular values of a matrix A [M, N] that comes row by row, from the eigenvalues of AᵀA (or
// AAᵀ where rows are fewer), in f64. Memory is min(M, N)² doubles, and the matrix itself where rows
// are fewer than columns. Values below about 1e-8 of the largest are rounding: enough to tell ranks
// of weights stored in f32 or less. Cost: M N min(M, N) + 4/3 min(M, N)³ multiplications.
class GramMatrix {
 public:
  GramMatrix(int64_t rows, int64_t columns);

  // The next values of A, row-major, any number of them. Throws Error(argument) for more than M·N.
  void add(std::span<const double> values);
  // Largest first, min(M, N) of them. Throws Error(argument) before all values were added,
  // Error(numeric) where one was not finite.
  std::vector<double> singular_values() const;
  // max(M, N) · eps of f32: what is below this share of the largest value counts as 0.
  double tolerance() const;

 private:
  void take_rows();

  int64_t rows_, columns_;
  int64_t taken_ = 0;  // rows
  std::vector<double> row_;
  std::vector<double> sum_;     // AᵀA, lower triangle, or
  std::vector<double> matrix_;  // A, where rows are fewer
};

// Of a tensor [M, N] of floats.
std::vector<double> singular_values(const Tensor& a);

// How many are above the largest times `tolerance`.
int64_t numerical_rank(std::span<const double> singular_values, double tolerance);
// exp(−Σ p ln p) of the shares p = s / Σ s: between 1 and their number. 0 for a matrix of zeros.
// Roy & Vetterli 2007, "The effective rank", definition 1.
double effective_rank(std::span<const double> singular_values);
// The fewest whose squares sum to `share` of all squares.
int64_t rank_holding(std::span<const double> singular_values, double share);

}  // namespace ingot
