#include <algorithm>
#include <vector>

#include "ingot/kernels/cpu/parallel.h"
#include "ingot/kernels/cpu/product.h"

namespace ingot::kernels {
namespace {

constexpr int64_t inner_block = 64;
constexpr int64_t column_block = 128;  // a packed block of b is 64 KiB

struct Block {
  int64_t begin;
  int64_t size;
};

// tile[k, n] = b[k0 + k, n0 + n], rows of column_block.
void pack(const Product& p, const double* b, Block k, Block n, double* tile) {
  for (int64_t i = 0; i < k.size; ++i) {
    const double* from = b + (k.begin + i) * p.b_steps.row + n.begin * p.b_steps.column;
    double* to = tile + i * column_block;
    for (int64_t j = 0; j < n.size; ++j) {
      to[j] = from[j * p.b_steps.column];
    }
  }
}

// y[n0 …] += Σ_k a[k0 + k] tile[k, :], for one row.
void add_row(const Product& p, const double* a, Block k, int64_t columns, const double* tile,
             double* y) {
  for (int64_t i = 0; i < k.size; ++i) {
    const double scale = a[(k.begin + i) * p.a_steps.column];
    const double* from = tile + i * column_block;
    for (int64_t j = 0; j < columns; ++j) {
      y[j] += scale * from[j];
    }
  }
}

void start_row(const Product& p, double* y) {
  if (!p.accumulate) {
    std::fill(y, y + p.columns, 0.0);
  }
  const auto* bias = static_cast<const double*>(p.bias);
  for (int64_t n = 0; bias != nullptr && n < p.columns; ++n) {
    y[n] += bias[n];
  }
}

// Rows [begin, end) of one product of the batch.
void multiply_rows(const Product& p, int64_t index, int64_t begin, int64_t end, double* tile) {
  const auto* a = static_cast<const double*>(p.a) + index * p.a_steps.batch;
  const auto* b = static_cast<const double*>(p.b) + index * p.b_steps.batch;
  auto* y = static_cast<double*>(p.y) + index * p.y_steps.batch;
  for (int64_t m = begin; m < end; ++m) {
    start_row(p, y + m * p.y_steps.row);
  }
  for (int64_t n0 = 0; n0 < p.columns; n0 += column_block) {
    const Block n{n0, std::min(column_block, p.columns - n0)};
    for (int64_t k0 = 0; k0 < p.inner; k0 += inner_block) {
      const Block k{k0, std::min(inner_block, p.inner - k0)};
      pack(p, b, k, n, tile);
      for (int64_t m = begin; m < end; ++m) {
        add_row(p, a + m * p.a_steps.row, k, n.size, tile, y + m * p.y_steps.row + n0);
      }
    }
  }
}

}  // namespace

void matmul_f64(const Product& p) {
  constexpr double flops_per_part = 65536;
  const double per_row = p.flops() / static_cast<double>(p.batch * p.rows);
  const auto grain = static_cast<int64_t>(std::clamp(flops_per_part / per_row, 1.0, 1e9));
  parallel_for(p.batch * p.rows, grain, [&](int64_t begin, int64_t end) {
    std::vector<double> tile(inner_block * column_block);
    while (begin < end) {
      const int64_t index = begin / p.rows;
      const int64_t stop = std::min(end, (index + 1) * p.rows);
      multiply_rows(p, index, begin - index * p.rows, stop - index * p.rows, tile.data());
      begin = stop;
    }
  });
}

}  // namespace ingot::kernels
