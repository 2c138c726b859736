// SIMD lanes of a compute type (float; double for f64) loaded from and stored to any floating-point
// dtype, and loaded from 8-bit codes. Included once per Highway target, hence no #pragma once: the
// guard toggles as hwy/foreach_target.h demands.
#if defined(INGOT_KERNELS_CPU_LANES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef INGOT_KERNELS_CPU_LANES_INL_H_
#undef INGOT_KERNELS_CPU_LANES_INL_H_
#else
#define INGOT_KERNELS_CPU_LANES_INL_H_
#endif

#include <hwy/highway.h>

#include <type_traits>

#include "ingot/base/half.h"

HWY_BEFORE_NAMESPACE();
namespace ingot::kernels::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// The type a dtype is computed in.
template <class T>
using Compute = std::conditional_t<std::is_same_v<T, double>, double, float>;
// Full vectors of T's compute type.
template <class T>
using Lanes = hn::ScalableTag<Compute<T>>;

// The lanes at p, converted to D's type.
template <class D>
HWY_INLINE hn::VFromD<D> load(D d, const float* p) {
  return hn::LoadU(d, p);
}
template <class D>
HWY_INLINE hn::VFromD<D> load(D d, const double* p) {
  return hn::LoadU(d, p);
}
template <class D>
HWY_INLINE hn::VFromD<D> load(D d, const BF16* p) {
  const hn::Rebind<uint16_t, D> d16;
  const hn::Rebind<uint32_t, D> d32;
  const auto bits = hn::LoadU(d16, reinterpret_cast<const uint16_t*>(p));
  return hn::BitCast(d, hn::ShiftLeft<16>(hn::PromoteTo(d32, bits)));
}
template <class D>
HWY_INLINE hn::VFromD<D> load(D d, const F16* p) {
  const hn::Rebind<hwy::float16_t, D> d16;
  return hn::PromoteTo(d, hn::LoadU(d16, reinterpret_cast<const hwy::float16_t*>(p)));
}

template <class D>
HWY_INLINE hn::VFromD<D> load(D d, const int8_t* p) {
  const hn::Rebind<int8_t, D> d8;
  const hn::Rebind<int32_t, D> d32;
  const auto whole = hn::PromoteTo(d32, hn::LoadU(d8, p));
  if constexpr (std::is_same_v<hn::TFromD<D>, double>) {
    return hn::PromoteTo(d, whole);
  } else {
    return hn::ConvertTo(d, whole);
  }
}

// Rounded to nearest, ties to even; NaN stays NaN.
template <class D>
HWY_INLINE void store(D d, hn::VFromD<D> v, float* p) {
  hn::StoreU(v, d, p);
}
template <class D>
HWY_INLINE void store(D d, hn::VFromD<D> v, double* p) {
  hn::StoreU(v, d, p);
}
template <class D>
HWY_INLINE void store(D, hn::VFromD<D> v, BF16* p) {
  const hn::Rebind<uint16_t, D> d16;
  const hn::Rebind<uint32_t, D> d32;
  const auto bits = hn::BitCast(d32, v);
  const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(d32, 1));
  const auto rounded = hn::Add(bits, hn::Add(odd, hn::Set(d32, 0x7fff)));
  const auto quiet = hn::Or(bits, hn::Set(d32, 0x400000));
  const auto is_nan = hn::RebindMask(d32, hn::IsNaN(v));
  const auto high = hn::ShiftRight<16>(hn::IfThenElse(is_nan, quiet, rounded));
  hn::StoreU(hn::TruncateTo(d16, high), d16, reinterpret_cast<uint16_t*>(p));
}
template <class D>
HWY_INLINE void store(D, hn::VFromD<D> v, F16* p) {
  const hn::Rebind<hwy::float16_t, D> d16;
  hn::StoreU(hn::DemoteTo(d16, v), d16, reinterpret_cast<hwy::float16_t*>(p));
}

// The first n < Lanes(d) elements at p; the other lanes are `rest`.
template <class D, class T>
HWY_INLINE hn::VFromD<D> load_n(D d, const T* p, int64_t n, hn::TFromD<D> rest = 0) {
  HWY_ALIGN T buffer[hn::MaxLanes(D())] = {};
  for (int64_t i = 0; i < n; ++i) {
    buffer[i] = p[i];
  }
  return hn::IfThenElse(hn::FirstN(d, static_cast<size_t>(n)), load(d, buffer), hn::Set(d, rest));
}
template <class D, class T>
HWY_INLINE void store_n(D d, hn::VFromD<D> v, T* p, int64_t n) {
  HWY_ALIGN T buffer[hn::MaxLanes(D())];
  store(d, v, buffer);
  for (int64_t i = 0; i < n; ++i) {
    p[i] = buffer[i];
  }
}

// Calls body(i, load, store) … for all i in [0, count): whole vectors first, then one partial.
//   each(d, count, [&](int64_t i, int64_t n) { … });   n = lanes(d), or fewer in the last call
template <class D, class F>
HWY_INLINE void each(D d, int64_t count, F&& body) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    body(i, lanes);
  }
  if (i < count) {
    body(i, count - i);
  }
}
// load/load_n and store/store_n by the n that each() passes.
template <class D, class T>
HWY_INLINE hn::VFromD<D> load_some(D d, const T* p, int64_t n, hn::TFromD<D> rest = 0) {
  return n == static_cast<int64_t>(hn::Lanes(d)) ? load(d, p) : load_n(d, p, n, rest);
}
template <class D, class T>
HWY_INLINE void store_some(D d, hn::VFromD<D> v, T* p, int64_t n) {
  if (n == static_cast<int64_t>(hn::Lanes(d))) {
    store(d, v, p);
  } else {
    store_n(d, v, p, n);
  }
}

}  // namespace ingot::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
