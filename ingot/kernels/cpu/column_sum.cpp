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

constexpr int64_t column_block = 256;
constexpr int64_t row_block = 128;  // summed by themselves first: errors grow with √ of the blocks

template <class C>
HWY_INLINE void add_to(C* sums, const C* parts, int64_t count) {
  const hn::ScalableTag<C> d;
  each(d, count, [&](int64_t i, int64_t n) HWY_ATTR {
    store_some(d, hn::Add(load_some(d, sums + i, n), load_some(d, parts + i, n)), sums + i, n);
  });
}

// y[0 … count) = Σ_m x[m, 0 … count), rows `stride` apart.
template <class T>
void sum_block(const T* x, int64_t rows, int64_t stride, int64_t count, Compute<T>* y) {
  using C = Compute<T>;
  const hn::ScalableTag<C> d;
  HWY_ALIGN C parts[column_block];
  std::fill(y, y + count, C(0));
  for (int64_t m0 = 0; m0 < rows; m0 += row_block) {
    std::fill(parts, parts + count, C(0));
    for (int64_t m = m0; m < std::min(rows, m0 + row_block); ++m) {
      const T* row = x + m * stride;
      each(d, count, [&](int64_t i, int64_t n) HWY_ATTR {
        const auto sum = hn::Add(load_some(d, parts + i, n), load_some(d, row + i, n));
        store_some(d, sum, parts + i, n);
      });
    }
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
