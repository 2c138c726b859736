// The reductions of kernels/reduce.h that walk element by element: integer sums, running sums,
// positions of extremes.

#include <cmath>
#include <type_traits>

#include "ingot/kernels/cpu/parallel.h"
#include "ingot/kernels/reduce.h"

namespace ingot::kernels {
namespace {

// f(first element of lane, index of lane) for each of the A · B lanes of x, in parallel.
template <class F>
void by_lane(const ConstView& x, F&& f) {
  const int64_t n = x.shape[1];
  const int64_t b = x.shape[2];
  const int64_t grain = std::max<int64_t>(1, 8192 / std::max<int64_t>(n, 1));
  parallel_for(x.shape[0] * b, grain, [&](int64_t begin, int64_t end) {
    for (int64_t lane = begin; lane < end; ++lane) {
      f(lane / b * n * b + lane % b, lane);
    }
  });
}

template <class T>
bool is_nan(T value) {
  if constexpr (std::is_integral_v<T>) {
    return false;
  } else {
    return std::isnan(static_cast<double>(value));
  }
}

// What a value is compared as.
template <class T>
auto ordered(T value) {
  if constexpr (std::is_same_v<T, BF16> || std::is_same_v<T, F16>) {
    return static_cast<float>(value);
  } else {
    return value;
  }
}

template <class T>
int64_t position_of(Extreme which, const T* x, int64_t n, int64_t stride) {
  int64_t best = 0;
  auto value = ordered(x[0]);
  for (int64_t i = 1; i < n && !is_nan(value); ++i) {
    const auto next = ordered(x[i * stride]);
    if (is_nan(next) || (which == Extreme::most ? next > value : next < value)) {
      best = i;
      value = next;
    }
  }
  return best;
}

template <class T, class Total>
void running_sum(const ConstView& x, const View& y) {
  by_lane(x, [&](int64_t first, int64_t) {
    const int64_t b = x.shape[2];
    Total total = 0;
    for (int64_t i = 0; i < x.shape[1]; ++i) {
      total += static_cast<Total>(x.as<T>()[first + i * b]);
      y.as<T>()[first + i * b] = static_cast<T>(total);
    }
  });
}

}  // namespace

void sum_integers(const Cpu&, const ConstView& x, const View& y) {
  visit_any(x.dtype, [&]<class T>() {
    if constexpr (std::is_integral_v<T>) {
      by_lane(x, [&](int64_t first, int64_t lane) {
        int64_t total = 0;
        for (int64_t i = 0; i < x.shape[1]; ++i) {
          total += static_cast<int64_t>(x.as<T>()[first + i * x.shape[2]]);
        }
        y.as<int64_t>()[lane] = total;
      });
    }
  });
}

void cumsum(const Cpu&, const ConstView& x, const View& y) {
  if (x.dtype == DType::i64) {
    running_sum<int64_t, int64_t>(x, y);
  } else {
    visit_float(x.dtype, "cumsum", [&]<class T>() { running_sum<T, double>(x, y); });
  }
}

void extreme(const Cpu&, Extreme which, const ConstView& x, const View& indices) {
  visit_any(x.dtype, [&]<class T>() {
    by_lane(x, [&](int64_t first, int64_t lane) {
      indices.as<int64_t>()[lane] = position_of(which, x.as<T>() + first, x.shape[1], x.shape[2]);
    });
  });
}

}  // namespace ingot::kernels
