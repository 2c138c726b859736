#include <algorithm>
#include <type_traits>

#include "ingot/kernels/cpu/parallel.h"
#include "ingot/kernels/cpu/product.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ingot/kernels/cpu/matmul_rows.cpp"
#include <hwy/foreach_target.h>
// clang-format off
#include <hwy/cache_control.h>
#include <hwy/highway.h>
#include "ingot/kernels/cpu/lanes-inl.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace ingot::kernels::HWY_NAMESPACE {
namespace {

// Weight rows read side by side: as many streams from memory, and sums that do not wait for one
// another.
constexpr int64_t side_by_side = 4;

// sums[m * W + w] = Σ_k a_m[k] b_w[k] for M rows of a and W of the weights. Fetches the elements
// `ahead` of those into the cache: rows are too short for the hardware to see where they lead.
template <int M, int W, class T>
void dots(const T* const* a, const T* const* b, int64_t inner, int64_t ahead, float* sums) {
  const hn::ScalableTag<float> d;
  using V = hn::VFromD<decltype(d)>;
  V totals[M * W];
  for (V& total : totals) {
    total = hn::Zero(d);
  }
  each(d, inner, [&](int64_t k, int64_t n) HWY_ATTR {
    V left[M];
    for (int m = 0; m < M; ++m) {
      left[m] = load_some(d, a[m] + k, n);
    }
    for (int w = 0; w < W; ++w) {
      hwy::Prefetch(b[w] + k + ahead);
      const V right = load_some(d, b[w] + k, n);
      for (int m = 0; m < M; ++m) {
        totals[m * W + w] = hn::MulAdd(left[m], right, totals[m * W + w]);
      }
    }
  });
  for (int i = 0; i < M * W; ++i) {
    sums[i] = hn::GetLane(hn::SumOfLanes(d, totals[i]));
  }
}

template <class Out>
void put(Out* y, float value, bool accumulate) {
  *y = static_cast<Out>(accumulate ? value + static_cast<float>(*y) : value);
}

float element(const void* data, DType dtype, int64_t i) {
  if (data == nullptr) {
    return 0;
  }
  return visit_float(dtype, "matmul",
                     [&]<class T>() { return static_cast<float>(static_cast<const T*>(data)[i]); });
}

// Columns [n, n + W) of one product of the batch.
template <int M, int W, class T, class Out>
void columns(const Product& p, int64_t index, int64_t n) {
  const T* a[M];
  const T* b[W];
  float sums[M * W];
  for (int m = 0; m < M; ++m) {
    a[m] = static_cast<const T*>(p.a) + index * p.a_steps.batch + m * p.a_steps.row;
  }
  for (int w = 0; w < W; ++w) {
    b[w] = static_cast<const T*>(p.b) + index * p.b_steps.batch + (n + w) * p.b_steps.column;
  }
  dots<M, W>(a, b, p.inner, 2 * side_by_side * p.b_steps.column, sums);
  for (int m = 0; m < M; ++m) {
    Out* y = static_cast<Out*>(p.y) + index * p.y_steps.batch + m * p.y_steps.row + n;
    for (int w = 0; w < W; ++w) {
      put(y + w, sums[m * W + w] + element(p.bias, p.bias_type, n + w), p.accumulate);
    }
  }
}

template <int M, class T, class Out>
void all_columns(const Product& p) {
  constexpr double flops_per_part = 100e3;
  const double per_column = 2.0 * M * static_cast<double>(p.inner);
  const auto grain = static_cast<int64_t>(std::clamp(flops_per_part / per_column, 4.0, 1e9)) /
                     side_by_side * side_by_side;
  for (int64_t index = 0; index < p.batch; ++index) {
    parallel_for(p.columns, grain, [&](int64_t begin, int64_t end) {
      int64_t n = begin;
      for (; n + side_by_side <= end; n += side_by_side) {
        columns<M, side_by_side, T, Out>(p, index, n);
      }
      for (; n < end; ++n) {
        columns<M, 1, T, Out>(p, index, n);
      }
    });
  }
}

template <class T, class Out>
void all_rows(const Product& p) {
  static_assert(few_rows == 4);
  switch (p.rows) {
    case 1: return all_columns<1, T, Out>(p);
    case 2: return all_columns<2, T, Out>(p);
    case 3: return all_columns<3, T, Out>(p);
    default: return all_columns<4, T, Out>(p);
  }
}

void MatmulFewRows(const Product& p) {
  visit_float(p.in, "matmul", [&]<class T>() {
    if constexpr (!std::is_same_v<T, double>) {
      p.out == p.in ? all_rows<T, T>(p) : all_rows<T, float>(p);
    }
  });
}

}  // namespace
}  // namespace ingot::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ingot::kernels {

HWY_EXPORT(MatmulFewRows);

void matmul_few_rows(const Product& p) { HWY_DYNAMIC_DISPATCH(MatmulFewRows)(p); }

}  // namespace ingot::kernels
#endif
