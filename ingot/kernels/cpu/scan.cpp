// The reductions of kernels/reduce.h that walk element by element: integer sums, running sums,
// positions of extremes.

#include <array>
#include <type_traits>

#include "ingot/kernels/cpu/parallel.h"
#include "ingot/kernels/reduce.h"

namespace ingot::kernels {
namespace {

constexpr int64_t tile_width = 64;

// f(first, width, lane) for tiles of up to tile_width neighbouring lanes of x: `first` is the
// offset of the first lane's first element, `lane` its number among the A · B. In parallel.
template <class F>
void by_tile(const ConstView& x, F&& f) {
  const int64_t n = x.shape[1];
  const int64_t b = x.shape[2];
  const int64_t tiles = (b + tile_width - 1) / tile_width;
  const int64_t each = std::max<int64_t>(n * std::min(b, tile_width), 1);
  parallel_for(x.shape[0] * tiles, std::max<int64_t>(1, 8192 / each),
               [&](int64_t begin, int64_t end) {
                 for (int64_t t = begin; t < end; ++t) {
                   const int64_t a = t / tiles;
                   const int64_t j = t % tiles * tile_width;
                   f(a * n * b + j, std::min(tile_width, b - j), a * b + j);
                 }
               });
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

// Whether `next` takes the place of `best`, which came before it. NaN takes it from numbers only.
template <class V>
bool beats(bool most, V next, V best) {
  const bool better = most ? !(next <= best) : !(next >= best);  // true with NaN on either side
  return better && best == best;
}

// One lane of neighbouring elements: most blocks hold nothing better, which is seen without
// following the position.
template <class T>
int64_t position_in_row(bool most, const T* x, int64_t n) {
  constexpr int64_t block = 64;
  int64_t position = 0;
  auto best = ordered(x[0]);
  for (int64_t first = 0; first < n; first += block) {
    const int64_t last = std::min(first + block, n);
    int found = 0;
    for (int64_t i = first; i < last; ++i) {
      const auto next = ordered(x[i]);
      found |= most ? !(next <= best) : !(next >= best);
    }
    for (int64_t i = first; i < last && found != 0; ++i) {
      const auto next = ordered(x[i]);
      if (beats(most, next, best)) {
        best = next;
        position = i;
      }
    }
  }
  return position;
}

// Neighbouring lanes at a stride: their positions advance together.
template <class T>
void positions_in_tile(bool most, const T* x, int64_t n, int64_t stride, int64_t width,
                       int64_t* positions) {
  std::array<decltype(ordered(T())), tile_width> best{};
  for (int64_t j = 0; j < width; ++j) {
    best[static_cast<size_t>(j)] = ordered(x[j]);
    positions[j] = 0;
  }
  for (int64_t i = 1; i < n; ++i) {
    for (int64_t j = 0; j < width; ++j) {
      auto& held = best[static_cast<size_t>(j)];
      const auto next = ordered(x[i * stride + j]);
      const bool better = beats(most, next, held);
      held = better ? next : held;
      positions[j] = better ? i : positions[j];
    }
  }
}

// y_n = Σ_{m ≤ n} x_m of every lane.
template <class T, class Total>
void running_sums(const ConstView& x, const View& y) {
  const int64_t n = x.shape[1];
  const int64_t b = x.shape[2];
  by_tile(x, [&](int64_t first, int64_t width, int64_t) {
    if (b == 1) {
      Total total{};
      for (int64_t i = first; i < first + n; ++i) {
        total += static_cast<Total>(x.as<T>()[i]);
        y.as<T>()[i] = static_cast<T>(total);
      }
      return;
    }
    std::array<Total, tile_width> totals{};
    for (int64_t i = 0; i < n; ++i) {
      const T* from = x.as<T>() + first + i * b;
      T* to = y.as<T>() + first + i * b;
      for (int64_t j = 0; j < width; ++j) {
        totals[static_cast<size_t>(j)] += static_cast<Total>(from[j]);
        to[j] = static_cast<T>(totals[static_cast<size_t>(j)]);
      }
    }
  });
}

}  // namespace

void sum_integers(const Cpu&, const ConstView& x, const View& y) {
  const int64_t b = x.shape[2];
  visit_any(x.dtype, [&]<class T>() {
    if constexpr (std::is_integral_v<T>) {
      by_tile(x, [&](int64_t first, int64_t width, int64_t lane) {
        std::array<int64_t, tile_width> totals{};
        for (int64_t i = 0; i < x.shape[1]; ++i) {
          for (int64_t j = 0; j < width; ++j) {
            totals[static_cast<size_t>(j)] += static_cast<int64_t>(x.as<T>()[first + i * b + j]);
          }
        }
        std::copy_n(totals.begin(), width, y.as<int64_t>() + lane);
      });
    }
  });
}

void cumsum(const Cpu&, const ConstView& x, const View& y) {
  if (x.dtype == DType::i64) {
    running_sums<int64_t, int64_t>(x, y);
  } else {
    visit_float(x.dtype, "cumsum", [&]<class T>() { running_sums<T, double>(x, y); });
  }
}

void extreme(const Cpu&, Extreme which, const ConstView& x, const View& indices) {
  const bool most = which == Extreme::most;
  const int64_t n = x.shape[1];
  visit_any(x.dtype, [&]<class T>() {
    by_tile(x, [&](int64_t first, int64_t width, int64_t lane) {
      int64_t* positions = indices.as<int64_t>() + lane;
      if (x.shape[2] == 1) {
        *positions = position_in_row(most, x.as<T>() + first, n);
      } else {
        positions_in_tile(most, x.as<T>() + first, n, x.shape[2], width, positions);
      }
    });
  });
}

}  // namespace ingot::kernels
