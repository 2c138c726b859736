#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "ingot/base/shape.h"
#include "ingot/kernels/cpu/parallel.h"

namespace ingot::kernels {

// A walk over N operands of one shape: dimensions that are contiguous in every operand are merged,
// so that the innermost runs are as long as the layouts allow.
template <size_t N>
struct StridedLoop {
  Shape shape;  // rank ≥ 1 after merging
  std::array<Strides, N> strides;

  StridedLoop(const Shape& full, const std::array<Strides, N>& all) {
    std::array<Strides, N> kept;
    for (int64_t i = 0; i < full.rank(); ++i) {
      if (full[i] == 1) {
        continue;
      }
      bool merges = shape.rank() > 0;
      for (size_t n = 0; n < N && merges; ++n) {
        merges = kept[n][shape.rank() - 1] == all[n][i] * full[i];
      }
      if (merges) {
        shape[shape.rank() - 1] *= full[i];
        for (size_t n = 0; n < N; ++n) {
          kept[n][shape.rank() - 1] = all[n][i];
        }
      } else {
        shape.push_back(full[i]);
        for (size_t n = 0; n < N; ++n) {
          kept[n].push_back(all[n][i]);
        }
      }
    }
    if (shape.rank() == 0) {
      shape.push_back(1);
      for (size_t n = 0; n < N; ++n) {
        kept[n].push_back(0);
      }
    }
    strides = kept;
  }

  int64_t inner() const { return shape[shape.rank() - 1]; }
  int64_t inner_stride(size_t operand) const { return strides[operand][shape.rank() - 1]; }

  // Offsets (in elements) of row `row`, counting over all dimensions but the innermost.
  std::array<int64_t, N> offsets(int64_t row) const {
    std::array<int64_t, N> out{};
    for (int64_t d = shape.rank() - 2; d >= 0; --d) {
      const int64_t i = row % shape[d];
      row /= shape[d];
      for (size_t n = 0; n < N; ++n) {
        out[n] += i * strides[n][d];
      }
    }
    return out;
  }

  // f(offsets, length): once per innermost run, in parallel; long runs are cut too.
  template <class F>
  void run(F&& f) const {
    constexpr int64_t grain = 16384;
    const int64_t length = inner();
    if (shape.elements() == 0) {
      return;
    }
    const int64_t rows = shape.elements() / length;
    if (rows == 1) {
      parallel_for(length, grain, [&](int64_t begin, int64_t end) {
        std::array<int64_t, N> at{};
        for (size_t n = 0; n < N; ++n) {
          at[n] = begin * inner_stride(n);
        }
        f(at, end - begin);
      });
      return;
    }
    parallel_for(rows, std::max<int64_t>(1, grain / length), [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        f(offsets(row), length);
      }
    });
  }
};

}  // namespace ingot::kernels
