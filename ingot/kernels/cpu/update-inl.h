// The frame of an optimizer's update: one pass over weight, gradient and state. Included once per
// Highway target, hence no #pragma once: the guard toggles as hwy/foreach_target.h demands.
#if defined(INGOT_KERNELS_CPU_UPDATE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef INGOT_KERNELS_CPU_UPDATE_INL_H_
#undef INGOT_KERNELS_CPU_UPDATE_INL_H_
#else
#define INGOT_KERNELS_CPU_UPDATE_INL_H_
#endif

#include <hwy/highway.h>

#include <array>

#include "ingot/base/view.h"
#include "ingot/kernels/cpu/lanes-inl.h"
#include "ingot/kernels/cpu/parallel.h"

HWY_BEFORE_NAMESPACE();
namespace ingot::kernels::HWY_NAMESPACE {

inline constexpr int64_t update_grain = 16384;  // elements: a part's start-up is small beside it

// A factor that the caller computed in double, in all lanes.
template <class D>
HWY_INLINE hn::VFromD<D> all(D d, double value) {
  return hn::Set(d, static_cast<hn::TFromD<D>>(value));
}

// Calls f with values of the types of p and of its rounded copy (p's own when there is none).
template <class F>
void with_types(const View& p, const View& rounded, F&& f) {
  if (p.dtype == DType::f64) {
    f.template operator()<double, double>();  // an f64 weight is never a half type's master
  } else if (rounded.data == nullptr) {
    f.template operator()<float, float>();
  } else if (rounded.dtype == DType::bf16) {
    f.template operator()<float, BF16>();
  } else {
    f.template operator()<float, F16>();
  }
}

// p ← f(d, p, g, s) for all elements, where s are the lanes of the state tensors, which f changes:
//   one_pass<2>(g, p, {m, v}, rounded, [a](auto d, auto w, auto grad, auto* s) { …; return w; });
template <size_t N, class F>
void one_pass(const ConstView& g, const View& p, const std::array<View, N>& state,
              const View& rounded, const F& f) {
  constexpr int count = N;
  with_types(p, rounded, [&]<class T, class R>() {
    parallel_for(p.elements(), update_grain, [&](int64_t begin, int64_t end) {
      const Lanes<T> d;
      const F own = f;  // a copy whose address nobody has: its numbers stay in registers
      const T* const gradient = g.as<T>() + begin;
      T* const weight = p.as<T>() + begin;
      R* const copy = static_cast<R*>(rounded.data) + (rounded.data == nullptr ? 0 : begin);
      std::array<T*, N> kept;
      for (int k = 0; k < count; ++k) {
        kept[k] = state[k].template as<T>() + begin;
      }
      each(d, end - begin, [&](int64_t i, int64_t n) {
        hn::VFromD<Lanes<T>> s[N > 0 ? N : 1];
        for (int k = 0; k < count; ++k) {
          s[k] = load_some(d, kept[k] + i, n);
        }
        const auto next = own(d, load_some(d, weight + i, n), load_some(d, gradient + i, n), &s[0]);
        for (int k = 0; k < count; ++k) {
          store_some(d, s[k], kept[k] + i, n);
        }
        store_some(d, next, weight + i, n);
        if constexpr (!std::is_same_v<T, R>) {
          store_some(d, next, copy + i, n);
        }
      });
    });
  });
}

}  // namespace ingot::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
