#include <algorithm>
#include <cmath>
#include <numeric>
#include <type_traits>
#include <vector>

#include "ingot/kernels/cpu/parallel.h"
#include "ingot/kernels/index.h"

namespace ingot::kernels {
namespace {

// What a value is compared as.
template <class T>
auto ordered(T value) {
  if constexpr (std::is_same_v<T, BF16> || std::is_same_v<T, F16>) {
    return static_cast<float>(value);
  } else {
    return value;
  }
}

// Whether a comes before b when the positions of equals do not matter. NaN comes after everything.
template <class V>
bool before(V a, V b, bool descending) {
  if constexpr (std::is_floating_point_v<V>) {
    if (std::isnan(a) || std::isnan(b)) {
      return !std::isnan(a) && std::isnan(b);
    }
  }
  return descending ? b < a : a < b;
}

// Orders the first k of `order`, the positions of a row.
template <class T>
void order_row(const T* x, bool descending, std::vector<int64_t>& order, int64_t k) {
  std::iota(order.begin(), order.end(), int64_t{0});
  const auto first = [&](int64_t i, int64_t j) {
    const auto a = ordered(x[i]);
    const auto b = ordered(x[j]);
    return before(a, b, descending) || (!before(b, a, descending) && i < j);
  };
  if (k < static_cast<int64_t>(order.size())) {
    std::partial_sort(order.begin(), order.begin() + k, order.end(), first);
  } else {
    std::sort(order.begin(), order.end(), first);
  }
}

}  // namespace

void sort(const Cpu&, const ConstView& x, bool descending, const View& values,
          const View& indices) {
  const int64_t n = x.shape[1];
  const int64_t k = values.shape[1];
  visit_any(x.dtype, [&]<class T>() {
    const int64_t grain = std::max<int64_t>(1, 4096 / std::max<int64_t>(n, 1));
    parallel_for(x.shape[0], grain, [&](int64_t begin, int64_t end) {
      std::vector<int64_t> order(static_cast<size_t>(n));
      for (int64_t r = begin; r < end; ++r) {
        const T* row = x.as<T>() + r * n;
        order_row(row, descending, order, k);
        for (int64_t i = 0; i < k; ++i) {
          const int64_t from = order[static_cast<size_t>(i)];
          values.as<T>()[r * k + i] = row[from];
          indices.as<int64_t>()[r * k + i] = from;
        }
      }
    });
  });
}

}  // namespace ingot::kernels
