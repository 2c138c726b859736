#include "ingot/kernels/cpu/strided.h"
#include "ingot/kernels/elementwise.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ingot/kernels/cpu/elementwise_unary.cpp"
#include <hwy/foreach_target.h>
// clang-format off
#include <hwy/highway.h>
#include "ingot/kernels/cpu/runs-inl.h"
#include "ingot/kernels/cpu/unary-inl.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace ingot::kernels::HWY_NAMESPACE {
namespace {

template <class C>
using UnaryBlock = void (*)(const UnaryCall& call, const C* x, C* y, int64_t n);

template <class F, class C>
void block(const UnaryCall& call, const C* x, C* y, int64_t n) {
  const Lanes<C> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t i = 0; i < n; i += lanes) {
    const int64_t count = std::min(lanes, n - i);
    store_some(d, F::f(d, load_some(d, x + i, count, 1), call), y + i, count);
  }
}

template <class C>
UnaryBlock<C> block_of(Unary f) {
  UnaryBlock<C> found = nullptr;
  visit_unary(f, UnaryList(), [&]<class Entry>() { found = block<Entry, C>; });
  return found;
}

void unary_floats(const UnaryCall& call, const ConstView& x, const View& y) {
  visit_float(y.dtype, "elementwise", [&]<class T>() {
    using C = Compute<T>;
    const StridedLoop<2> loop(y.shape, {x.strides, y.strides});
    const UnaryBlock<C> function = block_of<C>(call.f);
    const int64_t sx = loop.inner_stride(0);
    const int64_t sy = loop.inner_stride(1);
    loop.run([&](const std::array<int64_t, 2>& at, int64_t length) {
      HWY_ALIGN C buffers[2][buffer_size];
      const int64_t step = stretch<T>(sx == 1 && sy == 1, length);
      for (int64_t i = 0; i < length; i += step) {
        const int64_t n = std::min(step, length - i);
        T* to = y.as<T>() + at[1] + i * sy;
        C* values = place(to, sy, buffers[1]);
        function(call, read_all(x.as<T>() + at[0] + i * sx, sx, n, buffers[0]), values, n);
        write(values, to, sy, n);
      }
    });
  });
}

Keeps keeps_of(Unary f) {
  Keeps found = Keeps::argument;
  visit_unary(f, UnaryList(), [&]<class Entry>() { found = Entry::from; });
  return found;
}

}  // namespace
}  // namespace ingot::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ingot::kernels {

HWY_EXPORT(unary_floats);
HWY_EXPORT(keeps_of);

void unary(const Cpu&, const UnaryCall& call, const ConstView& x, const View& y) {
  HWY_DYNAMIC_DISPATCH(unary_floats)(call, x, y);
}

Keeps keeps(Unary f) { return HWY_DYNAMIC_DISPATCH(keeps_of)(f); }

}  // namespace ingot::kernels
#endif
