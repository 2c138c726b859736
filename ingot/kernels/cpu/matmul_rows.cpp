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

// Rows [row, row + M) and columns [n, n + W) of one product of the batch.
template <int M, int W, class T, class Out>
void block(const Product& p, int64_t index, int64_t row, int64_t n) {
  const T* a[M];
  const T* b[W];
  float sums[M * W];
  for (int m = 0; m < M; ++m) {
    a[m] = static_cast<const T*>(p.a) + index * p.a_steps.batch + (row + m) * p.a_steps.row;
  }
  for (int w = 0; w < W; ++w) {
    b[w] = static_cast<const T*>(p.b) + index * p.b_steps.batch + (n + w) * p.b_steps.column;
  }
  dots<M, W>(a, b, p.inner, 2 * side_by_side * p.b_steps.column, sums);
  for (int m = 0; m < M; ++m) {
    Out* y = static_cast<Out*>(p.y) + index * p.y_steps.batch + (row + m) * p.y_steps.row + n;
    for (int w = 0; w < W; ++w) {
      put(y + w, sums[m * W + w] + element(p.bias, p.bias_type, n + w), p.accumulate);
    }
  }
}

// Rows [row, row + M) and columns [n, end).
template <int M, class T, class Out>
void band(const Product& p, int64_t index, int64_t row, int64_t n, int64_t end) {
  for (; n + side_by_side <= end; n += side_by_side) {
    block<M, side_by_side, T, Out>(p, index, row, n);
  }
  for (; n < end; ++n) {
    block<M, 1, T, Out>(p, index, row, n);
  }
}

// All rows: four at a time, the later ones with the piece of the weights in the cache. A sum does
// not depend on how many rows there are: texts decoded together get the bits of each alone.
template <class T, class Out>
void bands(const Product& p, int64_t index, int64_t n, int64_t end) {
  constexpr int64_t weights_per_piece = 32 << 10;
  const int64_t piece =
      p.rows <= 4 ? end - n : std::max<int64_t>(side_by_side, weights_per_piece / p.inner);
  for (; n < end; n += piece) {
    const int64_t last = std::min(n + piece, end);
    for (int64_t row = 0; row < p.rows; row += 4) {
      switch (std::min<int64_t>(p.rows - row, 4)) {
        case 1: band<1, T, Out>(p, index, row, n, last); break;
        case 2: band<2, T, Out>(p, index, row, n, last); break;
        case 3: band<3, T, Out>(p, index, row, n, last); break;
        default: band<4, T, Out>(p, index, row, n, last);
      }
    }
  }
}

// Columns [begin, end) of all products laid end to end, each as often as its batch.
template <class T, class Out>
void some_columns(std::span<const Product> products, int64_t begin, int64_t end) {
  int64_t first = 0;  // of the product, among all columns
  for (const Product& p : products) {
    for (int64_t index = 0; index < p.batch; ++index, first += p.columns) {
      const int64_t n = std::max<int64_t>(begin - first, 0);
      const int64_t last = std::min(end - first, p.columns);
      if (n < last) {
        bands<T, Out>(p, index, n, last);
      }
    }
  }
}

template <class T, class Out>
void all_columns(std::span<const Product> products) {
  constexpr double flops_per_part = 100e3;
  double flops = 0;
  int64_t count = 0;
  for (const Product& p : products) {
    flops += p.flops();
    count += p.batch * p.columns;
  }
  const double per_column = flops / static_cast<double>(count);
  const auto grain = static_cast<int64_t>(std::clamp(flops_per_part / per_column, 4.0, 1e9)) /
                     side_by_side * side_by_side;
  parallel_for(count, grain,
               [&](int64_t begin, int64_t end) { some_columns<T, Out>(products, begin, end); });
}

void MatmulFewRows(std::span<const Product> products) {
  const Product& any = products.front();
  visit_float(any.in, "matmul", [&]<class T>() {
    if constexpr (!std::is_same_v<T, double>) {
      any.out == any.in ? all_columns<T, T>(products) : all_columns<T, float>(products);
    }
  });
}

}  // namespace
}  // namespace ingot::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ingot::kernels {

HWY_EXPORT(MatmulFewRows);

void matmul_few_rows(std::span<const Product> products) {
  HWY_DYNAMIC_DISPATCH(MatmulFewRows)(products);
}

}  // namespace ingot::kernels
#endif
