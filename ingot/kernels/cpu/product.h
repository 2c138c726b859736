#pragma once

#include <cstdint>
#include <span>

#include "ingot/base/dtype.h"

namespace ingot::kernels {

// A batched matrix product as the routes of matmul.cpp see it: y = a b [+ y] [+ bias].
// a: [batch, rows, inner]   b: [batch, inner, columns]   y: [batch, rows, columns]   bias:
// [columns]
struct Product {
  // Steps in elements. For a and b one of row and column is 1, for y column is; a step along a
  // dimension of size 1 is that of a dense layout.
  struct Steps {
    int64_t batch = 0;
    int64_t row = 0;
    int64_t column = 1;
  };

  int64_t batch = 1;
  int64_t rows = 0;
  int64_t columns = 0;
  int64_t inner = 0;
  const void* a = nullptr;
  const void* b = nullptr;
  void* y = nullptr;
  const void* bias = nullptr;  // or null
  Steps a_steps;
  Steps b_steps;
  Steps y_steps;
  DType in = DType::f32;   // of a and b
  DType out = DType::f32;  // of y
  DType bias_type = DType::f32;
  bool accumulate = false;

  double flops() const {
    return 2.0 * static_cast<double>(batch) * static_cast<double>(rows) *
           static_cast<double>(columns) * static_cast<double>(inner);
  }
};

// Through oneDNN; false where it has no fast implementation for these types on this processor.
bool matmul_onednn(const Product& p);

// bf16 or f16, block by block in f32: a sum is rounded once, as where the processor multiplies such
// types.
void matmul_widened(const Product& p);

// f64, plain loops over blocks that stay in cache; rows are shared out among the threads.
void matmul_f64(const Product& p);

// Few rows against weights whose rows are contiguous (b_steps.row == 1), f32, bf16 or f16: reads
// each weight once, at the memory's speed. Several products of as many rows and the same types are
// shared out among the threads as one.
constexpr int64_t few_rows = 8;
void matmul_few_rows(std::span<const Product> products);

}  // namespace ingot::kernels
