#include "ingot/kernels/column_sum.h"

#include <algorithm>

#include "ingot/kernels/cpu/parallel.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ingot/kernels/cpu/column_sum.cpp"
#include <hwy/foreach_target.h>
// clang-format off
#include <hwy/highway.h>
#include "ingot/kernels/cpu/lanes-inl.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace ingot::kernels::HWY_NAMESPACE {
namespace {

constexpr int64_t column_block = 2048;  // a row's part is read ahead, and the sums stay in L1
constexpr int64_t row_block = 128;  // summed by themselves first: errors grow with √ of the blocks
constexpr int64_t rows_at_once = 4;  // a sum is loaded and stored once for so many rows

template <class C>
HWY_INLINE void add_to(C* sums, const C* parts, int64_t count) {
  const hn::ScalableTag<C> d;
  each(d, count, [&](int64_t i, int64_t n) HWY_ATTR {
    store_some(d, hn::Add(load_some(d, sums + i, n), load_some(d, parts + i, n)), sums + i, n);
  });
}

// parts[i] += Σ_m x[m, i] of `rows` ≤ row_block rows, `stride` apart.
template <class T>
HWY_INLINE void add_rows(const T* x, int64_t rows, int64_t stride, int64_t count,
                         Compute<T>* parts) {
  const hn::ScalableTag<Compute<T>> d;
  int64_t m = 0;
  for (; m + rows_at_once <= rows; m += rows_at_once) {
    const T* row = x + m * stride;
    each(d, count, [&](int64_t i, int64_t n) HWY_ATTR {
      const auto first = hn::Add(load_some(d, row + i, n), load_some(d, row + stride + i, n));
      const auto second =
          hn::Add(load_some(d, row + 2 * stride + i, n), load_some(d, row + 3 * stride + i, n));
      const auto sum = hn::Add(load_some(d, parts + i, n), hn::Add(first, second));
      store_some(d, sum, parts + i, n);
    });
  }
  for (; m < rows; ++m) {
    const T* row = x + m * stride;
    each(d, count, [&](int64_t i, int64_t n) HWY_ATTR {
      store_some(d, hn::Add(load_some(d, parts + i, n), load_some(d, row + i, n)), parts + i, n);
    });
  }
}

// y[0 … count) = Σ_m x[m, 0 … count), rows `stride` apart.
template <class T>
void sum_block(const T* x, int64_t rows, int64_t stride, int64_t count, Compute<T>* y) {
  HWY_ALIGN Compute<T> parts[column_block];
  std::fill(y, y + count, Compute<T>(0));
  for (int64_t m = 0; m < rows; m += row_block) {
    std::fill(parts, parts + count, Compute<T>(0));
    add_rows(x + m * stride, std::min(row_block, rows - m), stride, count, parts);
    add_to(y, parts, count);
  }
}

void ColumnSum(const ConstView& x, const View& y) {
  const int64_t rows = x.size(0);
  const int64_t columns = x.size(1);
  visit_float(x.dtype, "column_sum", [&]<class T>() {
    const int64_t grain = std::max<int64_t>(32, 32768 / std::max<int64_t>(rows, 1) / 32 * 32);
    parallel_for(columns, grain, [&](int64_t begin, int64_t end) {
      for (int64_t n = begin; n < end; n += column_block) {
        sum_block(x.as<T>() + n, rows, columns, std::min(column_block, end - n),
                  y.as<Compute<T>>() + n);
      }
    });
  });
}

}  // namespace
}  // namespace ingot::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ingot::kernels {

HWY_EXPORT(ColumnSum);

void column_sum(const Cpu&, const ConstView& x, const View& y) {
  HWY_DYNAMIC_DISPATCH(ColumnSum)(x, y);
}

}  // namespace ingot::kernels
#endif
