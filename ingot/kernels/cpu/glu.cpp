#include "ingot/kernels/glu.h"

#include "ingot/kernels/cpu/parallel.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ingot/kernels/cpu/glu.cpp"
#include <hwy/foreach_target.h>
// clang-format off
#include <hwy/highway.h>
#include "ingot/kernels/cpu/unary-inl.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace ingot::kernels::HWY_NAMESPACE {
namespace {

using Gates = TypeList<Silu, Gelu, GeluTanh, Sigmoid, Relu>;

// f(row, first column, columns) over all of an [N, F] array, in stretches that suit a thread.
template <class F>
void by_stretch(int64_t rows, int64_t columns, F&& f) {
  constexpr int64_t longest = 4096;
  if (rows == 0 || columns == 0) {
    return;
  }
  const int64_t parts = (columns + longest - 1) / longest;
  const int64_t grain = std::max<int64_t>(1, longest / columns);
  parallel_for(rows * parts, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t column = i % parts * longest;
      f(i / parts, column, std::min(longest, columns - column));
    }
  });
}

template <class Act, class T>
void gated_run(const T* gate, const T* up, T* y, int64_t size) {
  const Lanes<T> d;
  const UnaryCall constants{};
  each(d, size, [&](int64_t i, int64_t n) {
    const auto a = Act::f(d, load_some(d, gate + i, n), constants);
    store_some(d, hn::Mul(a, load_some(d, up + i, n)), y + i, n);
  });
}

template <class Act, class T>
void gated_backward_run(const T* gate, const T* up, const T* dy, T* dgate, T* dup, int64_t size) {
  const Lanes<T> d;
  const UnaryCall constants{};
  each(d, size, [&](int64_t i, int64_t n) {
    const auto x = load_some(d, gate + i, n);
    const auto g = load_some(d, dy + i, n);
    const auto a = Act::f(d, x, constants);
    const auto slope = Act::slope(d, Act::from == Keeps::result ? a : x, constants);
    store_some(d, hn::Mul(hn::Mul(g, load_some(d, up + i, n)), slope), dgate + i, n);
    store_some(d, hn::Mul(g, a), dup + i, n);
  });
}

void gated_all(const ConstView& gate, const ConstView& up, Unary activation, const View& y) {
  const int64_t columns = y.size(1);
  visit_float(y.dtype, "gated", [&]<class T>() {
    visit_unary(activation, Gates{}, [&]<class Act>() {
      by_stretch(y.size(0), columns, [&](int64_t row, int64_t column, int64_t count) {
        gated_run<Act>(gate.as<T>() + row * gate.strides[0] + column,
                       up.as<T>() + row * up.strides[0] + column,
                       y.as<T>() + row * columns + column, count);
      });
    });
  });
}

void gated_backward_all(const ConstView& gate, const ConstView& up, const ConstView& dy,
                        Unary activation, const View& dgate, const View& dup) {
  const int64_t columns = dy.size(1);
  visit_float(dy.dtype, "gated", [&]<class T>() {
    visit_unary(activation, Gates{}, [&]<class Act>() {
      by_stretch(dy.size(0), columns, [&](int64_t row, int64_t column, int64_t count) {
        const int64_t at = row * columns + column;
        gated_backward_run<Act>(gate.as<T>() + row * gate.strides[0] + column,
                                up.as<T>() + row * up.strides[0] + column, dy.as<T>() + at,
                                dgate.as<T>() + at, dup.as<T>() + at, count);
      });
    });
  });
}

}  // namespace
}  // namespace ingot::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ingot::kernels {

HWY_EXPORT(gated_all);
HWY_EXPORT(gated_backward_all);

void gated(const Cpu&, const ConstView& gate, const ConstView& up, Unary activation,
           const View& y) {
  HWY_DYNAMIC_DISPATCH(gated_all)(gate, up, activation, y);
}

void gated_backward(const Cpu&, const ConstView& gate, const ConstView& up, const ConstView& dy,
                    Unary activation, const View& dgate, const View& dup) {
  HWY_DYNAMIC_DISPATCH(gated_backward_all)(gate, up, dy, activation, dgate, dup);
}

}  // namespace ingot::kernels
#endif
