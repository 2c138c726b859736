#include "ingot/kernels/reduce.h"

#include <cmath>
#include <vector>

#include "ingot/kernels/cpu/parallel.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ingot/kernels/cpu/reduce.cpp"
#include <hwy/foreach_target.h>
// clang-format off
#include <hwy/highway.h>
#include "ingot/kernels/cpu/lanes-inl.h"
#include "ingot/kernels/cpu/math-inl.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace ingot::kernels::HWY_NAMESPACE {
namespace {

// Sums are made in two levels: chunks of the summed dimension in C, the chunks' sums in order. How
// it is chunked depends on the shape alone, so the result does not depend on the threads.
constexpr int64_t row_chunk = 8192;
constexpr int64_t tile_width = 256;
constexpr int64_t tile_chunks = 64;

// What is summed: a function of the element and of a number that belongs to the sum.
struct Itself {
  template <class D, class V>
  static HWY_INLINE V f(D, V x, V) {
    return x;
  }
};
struct SquaredDistance {
  template <class D, class V>
  static HWY_INLINE V f(D, V x, V mean) {
    const V gap = hn::Sub(x, mean);
    return hn::Mul(gap, gap);
  }
};
struct ExpDistance {
  template <class D, class V>
  static HWY_INLINE V f(D d, V x, V most) {
    return exp(d, hn::Sub(x, most));
  }
};

// ---- N contiguous elements (B = 1)

template <class F, class T>
Compute<T> chunk_sum(const T* x, int64_t n, Compute<T> about) {
  const Lanes<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto centre = hn::Set(d, about);
  auto a = hn::Zero(d);
  auto b = hn::Zero(d);
  int64_t i = 0;
  for (; i + 2 * lanes <= n; i += 2 * lanes) {
    a = hn::Add(a, F::f(d, load(d, x + i), centre));
    b = hn::Add(b, F::f(d, load(d, x + i + lanes), centre));
  }
  for (; i < n; i += lanes) {
    const int64_t left = std::min(lanes, n - i);
    const auto value = F::f(d, load_some(d, x + i, left), centre);
    const auto wanted = hn::FirstN(d, static_cast<size_t>(left));
    a = hn::Add(a, hn::IfThenElseZero(wanted, value));
  }
  return hn::GetLane(hn::SumOfLanes(d, hn::Add(a, b)));
}

template <class F, class T>
double row_sum(const T* x, int64_t n, Compute<T> about) {
  double total = 0;
  for (int64_t i = 0; i < n; i += row_chunk) {
    total += chunk_sum<F>(x + i, std::min(row_chunk, n - i), about);
  }
  return total;
}

// The same by all threads: for one long row.
template <class F, class T>
double long_row_sum(const T* x, int64_t n, Compute<T> about) {
  const int64_t chunks = (n + row_chunk - 1) / row_chunk;
  std::vector<double> sums(static_cast<size_t>(chunks));
  parallel_for(chunks, 1, [&](int64_t begin, int64_t end) {
    for (int64_t c = begin; c < end; ++c) {
      const int64_t i = c * row_chunk;
      sums[static_cast<size_t>(c)] = chunk_sum<F>(x + i, std::min(row_chunk, n - i), about);
    }
  });
  double total = 0;
  for (const double sum : sums) {
    total += sum;
  }
  return total;
}

template <class T>
Compute<T> row_most(const T* x, int64_t n) {
  const Lanes<T> d;
  auto most = hn::Set(d, -HUGE_VALF);
  each(d, n, [&](int64_t i, int64_t left) {
    most = hn::Max(most, load_some(d, x + i, left, -HUGE_VALF));
  });
  return hn::GetLane(hn::MaxOfLanes(d, most));
}

// f(row) for rows of n elements, in parallel.
template <class F>
void by_row(int64_t rows, int64_t n, F&& f) {
  const int64_t grain = std::max<int64_t>(1, 4096 / std::max<int64_t>(n, 1));
  parallel_for(rows, grain, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      f(r);
    }
  });
}

// y_r = finish(Σ_n F(x_rn, about(r)), about(r))
template <class F, class T, class About, class Finish>
void reduce_rows(const ConstView& x, const View& y, About&& about, Finish&& finish) {
  const int64_t rows = x.shape[0];
  const int64_t n = x.shape[1];
  const auto one = [&](int64_t r, auto&& sum) {
    const T* row = x.as<T>() + r * n;
    const Compute<T> centre = about(row, n);
    y.as<T>()[r] = static_cast<T>(finish(sum(row, n, centre), centre));
  };
  if (rows < workers() && n > 4 * row_chunk) {
    for (int64_t r = 0; r < rows; ++r) {
      one(r, long_row_sum<F, T>);
    }
  } else {
    by_row(rows, n, [&](int64_t r) { one(r, row_sum<F, T>); });
  }
}

// ---- N elements at a stride of B, for `width` ≤ tile_width neighbours at once

// totals_j = Σ over rows [0, rows) of F(x_j, about_j)
template <class F, class T>
void tile_chunk_sum(const T* x, int64_t rows, int64_t stride, int64_t width,
                    const Compute<T>* about, Compute<T>* totals) {
  const Lanes<T> d;
  std::fill_n(totals, width, Compute<T>(0));
  for (int64_t r = 0; r < rows; ++r) {
    each(d, width, [&](int64_t j, int64_t left) {
      const auto value =
          F::f(d, load_some(d, x + r * stride + j, left), load_some(d, about + j, left));
      store_some(d, hn::Add(load_some(d, totals + j, left), value), totals + j, left);
    });
  }
}

// Rows of a chunk: a function of N alone.
inline int64_t chunk_rows(int64_t n) {
  return std::max<int64_t>(64, (n + tile_chunks - 1) / tile_chunks);
}

template <class F, class T>
void tile_sum(const T* x, int64_t n, int64_t stride, int64_t width, const Compute<T>* about,
              Compute<T>* totals) {
  HWY_ALIGN Compute<T> part[tile_width];
  std::fill_n(totals, width, Compute<T>(0));
  for (int64_t r = 0; r < n; r += chunk_rows(n)) {
    tile_chunk_sum<F>(x + r * stride, std::min(chunk_rows(n), n - r), stride, width, about, part);
    for (int64_t j = 0; j < width; ++j) {
      totals[j] += part[j];
    }
  }
}

// The same with the chunks spread over all threads: for one narrow, tall tile.
template <class F, class T>
void tall_tile_sum(const T* x, int64_t n, int64_t stride, int64_t width, const Compute<T>* about,
                   Compute<T>* totals) {
  const int64_t rows = chunk_rows(n);
  const int64_t chunks = (n + rows - 1) / rows;
  std::vector<Compute<T>> parts(static_cast<size_t>(chunks * width));
  parallel_for(chunks, 1, [&](int64_t begin, int64_t end) {
    for (int64_t c = begin; c < end; ++c) {
      tile_chunk_sum<F>(x + c * rows * stride, std::min(rows, n - c * rows), stride, width, about,
                        parts.data() + c * width);
    }
  });
  std::fill_n(totals, width, Compute<T>(0));
  for (int64_t c = 0; c < chunks; ++c) {
    for (int64_t j = 0; j < width; ++j) {
      totals[j] += parts[static_cast<size_t>(c * width + j)];
    }
  }
}

template <class T>
void tile_most(const T* x, int64_t n, int64_t stride, int64_t width, Compute<T>* most) {
  std::fill_n(most, width, Compute<T>(-HUGE_VALF));
  const Lanes<T> d;
  for (int64_t r = 0; r < n; ++r) {
    each(d, width, [&](int64_t j, int64_t left) {
      const auto value = load_some(d, x + r * stride + j, left);
      store_some(d, hn::Max(load_some(d, most + j, left), value), most + j, left);
    });
  }
}

// f(a, first, width) for the tiles of B columns of every a in A; in parallel unless there are few.
template <class F>
void by_tile(int64_t a, int64_t n, int64_t b, bool parallel, F&& f) {
  const int64_t tiles = (b + tile_width - 1) / tile_width;
  const auto one = [&](int64_t t) {
    const int64_t first = t % tiles * tile_width;
    f(t / tiles, first, std::min(tile_width, b - first));
  };
  const int64_t grain =
      std::max<int64_t>(1, 4096 / std::max<int64_t>(n * std::min(b, tile_width), 1));
  if (parallel) {
    parallel_for(a * tiles, grain, [&](int64_t begin, int64_t end) {
      for (int64_t t = begin; t < end; ++t) {
        one(t);
      }
    });
  } else {
    for (int64_t t = 0; t < a * tiles; ++t) {
      one(t);
    }
  }
}

// y_ab = finish(Σ_n F(x_anb, about_ab), about_ab), where about(x, n, stride, width, out) fills a
// tile.
template <class F, class T, class About, class Finish>
void reduce_tiles(const ConstView& x, const View& y, About&& about, Finish&& finish) {
  const int64_t n = x.shape[1];
  const int64_t b = x.shape[2];
  const int64_t tiles = x.shape[0] * ((b + tile_width - 1) / tile_width);
  const bool tall = tiles < 2 * workers() && n * std::min(b, tile_width) > 65536;
  by_tile(x.shape[0], n, b, !tall, [&](int64_t a, int64_t first, int64_t width) {
    HWY_ALIGN Compute<T> centres[tile_width] = {};
    HWY_ALIGN Compute<T> totals[tile_width];
    const T* from = x.as<T>() + a * n * b + first;
    about(from, n, b, width, centres);
    (tall ? tall_tile_sum<F, T> : tile_sum<F, T>)(from, n, b, width, centres, totals);
    T* to = y.as<T>() + a * b + first;
    for (int64_t j = 0; j < width; ++j) {
      to[j] = static_cast<T>(finish(totals[j], centres[j]));
    }
  });
}

// ---- the reductions

// Conversions round once, from the compute type.
template <class T>
auto scaled(double scale) {
  return [scale](auto total, Compute<T>) {
    return static_cast<Compute<T>>(static_cast<double>(total) * scale);
  };
}

void sum_floats(const ConstView& x, double scale, const View& y) {
  visit_float(x.dtype, "sum", [&]<class T>() {
    using C = Compute<T>;
    if (x.shape[2] == 1) {
      reduce_rows<Itself, T>(
          x, y, [](const T*, int64_t) { return C(0); }, scaled<T>(scale));
    } else {
      const auto nothing = [](const T*, int64_t, int64_t, int64_t width, C* out) {
        std::fill_n(out, width, C(0));
      };
      reduce_tiles<Itself, T>(x, y, nothing, scaled<T>(scale));
    }
  });
}

void squared_deviation_floats(const ConstView& x, double scale, const View& y) {
  visit_float(x.dtype, "var", [&]<class T>() {
    using C = Compute<T>;
    if (x.shape[2] == 1) {
      const auto mean = [](const T* row, int64_t n) {
        return static_cast<C>(row_sum<Itself>(row, n, 0) / static_cast<double>(n));
      };
      reduce_rows<SquaredDistance, T>(x, y, mean, scaled<T>(scale));
    } else {
      const auto mean = [](const T* from, int64_t n, int64_t stride, int64_t width, C* out) {
        HWY_ALIGN const C zero[tile_width] = {};
        tile_sum<Itself>(from, n, stride, width, zero, out);
        for (int64_t j = 0; j < width; ++j) {
          out[j] /= static_cast<C>(n);
        }
      };
      reduce_tiles<SquaredDistance, T>(x, y, mean, scaled<T>(scale));
    }
  });
}

// The shift of a log-sum-exp: the largest element, but 0 instead of ±∞, where x − ∞ would be NaN.
template <class C>
C finite_or_zero(C most) {
  return std::isinf(most) ? C(0) : most;
}

void logsumexp_floats(const ConstView& x, const View& y) {
  visit_float(x.dtype, "logsumexp", [&]<class T>() {
    using C = Compute<T>;
    const auto finish = [](auto total, C most) { return most + static_cast<C>(std::log(total)); };
    if (x.shape[2] == 1) {
      const auto most = [](const T* row, int64_t n) { return finite_or_zero(row_most(row, n)); };
      reduce_rows<ExpDistance, T>(x, y, most, finish);
    } else {
      const auto most = [](const T* from, int64_t n, int64_t stride, int64_t width, C* out) {
        tile_most(from, n, stride, width, out);
        std::transform(out, out + width, out, finite_or_zero<C>);
      };
      reduce_tiles<ExpDistance, T>(x, y, most, finish);
    }
  });
}

}  // namespace
}  // namespace ingot::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ingot::kernels {

HWY_EXPORT(sum_floats);
HWY_EXPORT(squared_deviation_floats);
HWY_EXPORT(logsumexp_floats);

void sum(const Cpu&, const ConstView& x, double scale, const View& y) {
  HWY_DYNAMIC_DISPATCH(sum_floats)(x, scale, y);
}

void squared_deviation(const Cpu&, const ConstView& x, double scale, const View& y) {
  HWY_DYNAMIC_DISPATCH(squared_deviation_floats)(x, scale, y);
}

void logsumexp(const Cpu&, const ConstView& x, const View& y) {
  HWY_DYNAMIC_DISPATCH(logsumexp_floats)(x, y);
}

}  // namespace ingot::kernels
#endif
