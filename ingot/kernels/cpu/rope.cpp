#include "ingot/kernels/rope.h"

#include <cmath>
#include <vector>

#include "ingot/kernels/cpu/parallel.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ingot/kernels/cpu/rope.cpp"
#include <hwy/foreach_target.h>
// clang-format off
#include <hwy/highway.h>
#include "ingot/kernels/cpu/lanes-inl.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace ingot::kernels::HWY_NAMESPACE {
namespace {

// One head of half_split; `sign` is −1 for the turn backward.
template <class T>
void turn_halves(const T* x, const Compute<T>* cos, const Compute<T>* sin, Compute<T> sign,
                 int64_t half, T* y) {
  const Lanes<T> d;
  const auto flip = hn::Set(d, sign);
  each(d, half, [&](int64_t p, int64_t n) {
    const auto c = load_some(d, cos + p, n);
    const auto s = hn::Mul(load_some(d, sin + p, n), flip);
    const auto u = load_some(d, x + p, n);
    const auto v = load_some(d, x + half + p, n);
    store_some(d, hn::MulSub(u, c, hn::Mul(v, s)), y + p, n);
    store_some(d, hn::MulAdd(u, s, hn::Mul(v, c)), y + half + p, n);
  });
}

// One head of interleaved: y_i = x_i c_i + x_{i^1} s_i with the tables of wide_tables().
template <class T>
void turn_neighbours(const T* x, const Compute<T>* cos, const Compute<T>* sin, int64_t rotated,
                     T* y) {
  const Lanes<T> d;
  each(d, rotated, [&](int64_t i, int64_t n) {
    const auto own = load_some(d, x + i, n);
    const auto other = hn::Mul(hn::Reverse2(d, own), load_some(d, sin + i, n));
    store_some(d, hn::MulAdd(own, load_some(d, cos + i, n), other), y + i, n);
  });
}

// Repeats each angle for both features of its pair: c, c and −s, s.
template <class C>
void wide_tables(const C* cos, const C* sin, C sign, int64_t half, C* wide_cos, C* wide_sin) {
  for (int64_t p = 0; p < half; ++p) {
    wide_cos[2 * p] = cos[p];
    wide_cos[2 * p + 1] = cos[p];
    wide_sin[2 * p] = -sign * sin[p];
    wide_sin[2 * p + 1] = sign * sin[p];
  }
}

template <class T>
void turn_tokens(const ConstView& x, const ConstView& cos, const ConstView& sin, RopeLayout layout,
                 Turn turn, const View& y, int64_t begin, int64_t end) {
  using C = Compute<T>;
  const int64_t times = x.size(1);
  const int64_t heads = x.size(2);
  const int64_t width = x.size(3);
  const int64_t half = cos.size(-1);
  const C sign = turn == Turn::forward ? 1 : -1;
  std::vector<C> wide(static_cast<size_t>(layout == RopeLayout::interleaved ? 4 * half : 0));
  for (int64_t row = begin; row < end; ++row) {
    const int64_t angles = (cos.rank() == 3 ? row : row % times) * half;
    const T* in = x.as<T>() + row / times * x.stride(0) + row % times * x.stride(1);
    T* out = y.as<T>() + row * heads * width;
    if (layout == RopeLayout::interleaved) {
      wide_tables(cos.as<C>() + angles, sin.as<C>() + angles, sign, half, wide.data(),
                  wide.data() + 2 * half);
    }
    for (int64_t h = 0; h < heads; ++h, in += width, out += width) {
      if (layout == RopeLayout::half_split) {
        turn_halves(in, cos.as<C>() + angles, sin.as<C>() + angles, sign, half, out);
      } else {
        turn_neighbours(in, wide.data(), wide.data() + 2 * half, 2 * half, out);
      }
      std::copy(in + 2 * half, in + width, out + 2 * half);
    }
  }
}

void turn_all(const ConstView& x, const ConstView& cos, const ConstView& sin, RopeLayout layout,
              Turn turn, const View& y) {
  visit_float(x.dtype, "rope", [&]<class T>() {
    const int64_t token = std::max<int64_t>(x.size(2) * x.size(3), 1);
    parallel_for(x.size(0) * x.size(1), std::max<int64_t>(1, 16384 / token),
                 [&](int64_t begin, int64_t end) {
                   turn_tokens<T>(x, cos, sin, layout, turn, y, begin, end);
                 });
  });
}

}  // namespace
}  // namespace ingot::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ingot::kernels {

HWY_EXPORT(turn_all);

void rope(const Cpu&, const ConstView& x, const ConstView& cos, const ConstView& sin,
          RopeLayout layout, Turn turn, const View& y) {
  HWY_DYNAMIC_DISPATCH(turn_all)(x, cos, sin, layout, turn, y);
}

void rope_tables(const Cpu&, const ConstView& positions, double base, const View& cos,
                 const View& sin) {
  const int64_t half = cos.size(-1);
  std::vector<double> frequencies(static_cast<size_t>(half));
  for (int64_t p = 0; p < half; ++p) {
    frequencies[static_cast<size_t>(p)] =
        std::pow(base, -static_cast<double>(p) / static_cast<double>(half));
  }
  visit_float(cos.dtype, "rope_tables", [&]<class T>() {
    parallel_for(positions.elements(), 64, [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r) {
        const auto position = static_cast<double>(positions.as<int64_t>()[r]);
        for (int64_t p = 0; p < half; ++p) {
          const double angle = position * frequencies[static_cast<size_t>(p)];
          cos.as<T>()[r * half + p] = static_cast<T>(std::cos(angle));
          sin.as<T>()[r * half + p] = static_cast<T>(std::sin(angle));
        }
      }
    });
  });
}

}  // namespace ingot::kernels
#endif
