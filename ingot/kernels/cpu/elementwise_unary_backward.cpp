#include "ingot/kernels/cpu/strided.h"
#include "ingot/kernels/elementwise.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ingot/kernels/cpu/elementwise_unary_backward.cpp"
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
using SlopeBlock = void (*)(const UnaryCall& call, const C* dy, const C* kept, C* dx, int64_t n);

template <class F, class C>
void block(const UnaryCall& call, const C* dy, const C* kept, C* dx, int64_t n) {
  const Lanes<C> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t i = 0; i < n; i += lanes) {
    const int64_t count = std::min(lanes, n - i);
    const auto slope = F::slope(d, load_some(d, kept + i, count, 1), call);
    store_some(d, hn::Mul(load_some(d, dy + i, count), slope), dx + i, count);
  }
}

template <class C>
SlopeBlock<C> block_of(Unary f) {
  SlopeBlock<C> found = nullptr;
  visit_unary(f, UnaryList(), [&]<class Entry>() { found = block<Entry, C>; });
  return found;
}

void unary_backward_floats(const UnaryCall& call, const ConstView& dy, const ConstView& kept,
                           const View& dx) {
  visit_float(dx.dtype, "elementwise", [&]<class T>() {
    using C = Compute<T>;
    const StridedLoop<3> loop(dx.shape, {dy.strides, kept.strides, dx.strides});
    const SlopeBlock<C> function = block_of<C>(call.f);
    const int64_t sy = loop.inner_stride(0);
    const int64_t sk = loop.inner_stride(1);
    const int64_t sx = loop.inner_stride(2);
    loop.run([&](const std::array<int64_t, 3>& at, int64_t length) {
      HWY_ALIGN C buffers[3][buffer_size];
      const int64_t step = stretch<T>(sy == 1 && sk == 1 && sx == 1, length);
      for (int64_t i = 0; i < length; i += step) {
        const int64_t n = std::min(step, length - i);
        T* to = dx.as<T>() + at[2] + i * sx;
        C* values = place(to, sx, buffers[2]);
        function(call, read_all(dy.as<T>() + at[0] + i * sy, sy, n, buffers[0]),
                 read_all(kept.as<T>() + at[1] + i * sk, sk, n, buffers[1]), values, n);
        write(values, to, sx, n);
      }
    });
  });
}

}  // namespace
}  // namespace ingot::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ingot::kernels {

HWY_EXPORT(unary_backward_floats);

void unary_backward(const Cpu&, const UnaryCall& call, const ConstView& dy, const ConstView& kept,
                    const View& dx) {
  HWY_DYNAMIC_DISPATCH(unary_backward_floats)(call, dy, kept, dx);
}

}  // namespace ingot::kernels
#endif
