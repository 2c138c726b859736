#include <algorithm>
#include <type_traits>

#include "ingot/kernels/cpu/bf16_dots.h"
#include "ingot/kernels/cpu/dispatch.h"
#include "ingot/kernels/cpu/parallel.h"
#include "ingot/kernels/cpu/product.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ingot/kernels/cpu/matmul_rows.cpp"
#include <hwy/foreach_target.h>
// clang-format off
#include <hwy/highway.h>
#include "ingot/kernels/cpu/lanes-inl.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace ingot::kernels::HWY_NAMESPACE {
namespace {

// Parts of a sum, so that its additions do not wait for one another.
constexpr int parts = 4;

// sums[m] = Σ_k a_m[k] b[k] for M rows of a and one of the weights. The weights are one stream from
// memory, row after row, which the hardware fetches ahead of itself. The order of a sum depends on
// `inner` alone.
template <int M, class T>
void dots(const T* const* a, const T* b, int64_t inner, float* sums) {
  const hn::ScalableTag<float> d;
  using V = hn::VFromD<decltype(d)>;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  V totals[M * parts];
  for (V& total : totals) {
    total = hn::Zero(d);
  }
  int64_t k = 0;
  for (; k + parts * lanes <= inner; k += parts * lanes) {
    for (int part = 0; part < parts; ++part) {
      const V right = load(d, b + k + part * lanes);
      for (int m = 0; m < M; ++m) {
        V& total = totals[m * parts + part];
        total = hn::MulAdd(load(d, a[m] + k + part * lanes), right, total);
      }
    }
  }
  each(d, inner - k, [&](int64_t i, int64_t n) HWY_ATTR {
    const V right = load_some(d, b + k + i, n);
    for (int m = 0; m < M; ++m) {
      totals[m * parts] = hn::MulAdd(load_some(d, a[m] + k + i, n), right, totals[m * parts]);
    }
  });
  for (int m = 0; m < M; ++m) {
    const V* t = totals + m * parts;
    sums[m] = hn::GetLane(hn::SumOfLanes(d, hn::Add(hn::Add(t[0], t[1]), hn::Add(t[2], t[3]))));
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

// Rows [row, row + M) and columns [n, end) of one product of the batch.
template <int M, class T, class Out>
void band(const Product& p, int64_t index, int64_t row, int64_t n, int64_t end) {
  const T* a[M];
  float sums[M];
  for (int m = 0; m < M; ++m) {
    a[m] = static_cast<const T*>(p.a) + index * p.a_steps.batch + (row + m) * p.a_steps.row;
  }
  const T* b = static_cast<const T*>(p.b) + index * p.b_steps.batch;
  Out* y = static_cast<Out*>(p.y) + index * p.y_steps.batch + row * p.y_steps.row;
  for (; n < end; ++n) {
    dots<M>(a, b + n * p.b_steps.column, p.inner, sums);
    const float bias = element(p.bias, p.bias_type, n);
    for (int m = 0; m < M; ++m) {
      put(y + m * p.y_steps.row + n, sums[m] + bias, p.accumulate);
    }
  }
}

// The same columns and all rows with instructions for bf16: a few rows of weights for all rows of a
// before the next.
template <class Out>
void bf16_band(const Product& p, int64_t index, int64_t n, int64_t end) {
  const BF16* b = static_cast<const BF16*>(p.b) + index * p.b_steps.batch;
  for (; n < end; n += most_dots) {
    const auto columns = static_cast<int>(std::min<int64_t>(end - n, most_dots));
    for (int64_t row = 0; row < p.rows; row += most_dots) {
      const auto rows = static_cast<int>(std::min<int64_t>(p.rows - row, most_dots));
      const BF16* a[most_dots];
      for (int m = 0; m < rows; ++m) {
        a[m] = static_cast<const BF16*>(p.a) + index * p.a_steps.batch + (row + m) * p.a_steps.row;
      }
      float sums[most_dots][most_dots];
      bf16_dots(rows, columns, a, b + n * p.b_steps.column, p.b_steps.column, p.inner, sums);
      Out* y = static_cast<Out*>(p.y) + index * p.y_steps.batch + row * p.y_steps.row + n;
      for (int column = 0; column < columns; ++column) {
        const float bias = element(p.bias, p.bias_type, n + column);
        for (int m = 0; m < rows; ++m) {
          put(y + m * p.y_steps.row + column, sums[column][m] + bias, p.accumulate);
        }
      }
    }
  }
}

// All rows: four at a time, the later ones with the piece of the weights in the cache. A sum does
// not depend on how many rows there are: texts decoded together get the bits of each alone.
template <class T, class Out>
void bands(const Product& p, int64_t index, int64_t n, int64_t end) {
  if constexpr (std::is_same_v<T, BF16>) {
    if (multiplies_bf16()) {
      bf16_band<Out>(p, index, n, end);
      return;
    }
  }
  constexpr int64_t weights_per_piece = 32 << 10;
  const int64_t piece = p.rows <= 4 ? end - n : std::max<int64_t>(1, weights_per_piece / p.inner);
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
  const auto grain = static_cast<int64_t>(std::clamp(flops_per_part / per_column, 4.0, 1e9));
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
