// Exponentials, logarithms and the normal distribution on lanes, right for every argument:
// infinities, NaN, denormal results, the far tails. Included once per Highway target.
//
// tests/ops/unary_test.cpp states their accuracy.
#if defined(INGOT_KERNELS_CPU_MATH_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef INGOT_KERNELS_CPU_MATH_INL_H_
#undef INGOT_KERNELS_CPU_MATH_INL_H_
#else
#define INGOT_KERNELS_CPU_MATH_INL_H_
#endif

#include <hwy/contrib/math/math-inl.h>
#include <hwy/highway.h>

#include <cmath>
#include <limits>
#include <type_traits>

HWY_BEFORE_NAMESPACE();
namespace ingot::kernels::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

template <class D>
inline constexpr bool is_single = std::is_same_v<hn::TFromD<D>, float>;

// f applied to each lane: for functions that are exact in the C library and too rare or too
// delicate to vectorise.
template <class D, class V, class F>
HWY_INLINE V lane_by_lane(D d, V x, F f) {
  using T = hn::TFromD<D>;
  HWY_ALIGN T lanes[hn::MaxLanes(D())];
  hn::Store(x, d, lanes);
  for (size_t i = 0; i < hn::Lanes(d); ++i) {
    lanes[i] = f(lanes[i]);
  }
  return hn::Load(d, lanes);
}

// e^x: +∞ above the largest exponent, 0 below the least, NaN of NaN (which hn::Exp takes for 0).
template <class D, class V>
HWY_INLINE V exp(D d, V x) {
  using T = hn::TFromD<D>;
  constexpr T most = is_single<D> ? T(104) : T(720);
  const V e = hn::Exp(d, hn::Min(x, hn::Set(d, most)));
  return hn::IfThenElse(hn::IsNaN(x), x, e);
}

// log x: −∞ at 0, NaN below it, +∞ at +∞.
template <class D, class V>
HWY_INLINE V log(D d, V x) {
  using T = hn::TFromD<D>;
  constexpr T infinity = std::numeric_limits<T>::infinity();
  constexpr T nan = std::numeric_limits<T>::quiet_NaN();
  const V inside = hn::Log(d, x);
  const V edge = hn::IfThenElse(hn::Eq(x, hn::Zero(d)), hn::Set(d, -infinity), hn::Set(d, nan));
  const V positive = hn::IfThenElse(hn::Eq(x, hn::Set(d, infinity)), x, inside);
  return hn::IfThenElse(hn::Gt(x, hn::Zero(d)), positive, edge);
}

// log(1 + e^−|x|), the part of softplus that is not linear: in (0, log 2].
template <class D, class V>
HWY_INLINE V log1p_exp_minus_abs(D d, V x) {
  return hn::IfThenElse(hn::IsNaN(x), x, hn::Log1p(d, exp(d, hn::Neg(hn::Abs(x)))));
}

// 1 / (1 + e^−x)
template <class D, class V>
HWY_INLINE V sigmoid(D d, V x) {
  const V one = hn::Set(d, 1);
  return hn::Div(one, hn::Add(one, exp(d, hn::Neg(x))));
}

template <class D, class V>
HWY_INLINE V tanh(D d, V x) {
  const V bounded = hn::Min(hn::Abs(x), hn::Set(d, 20));
  return hn::IfThenElse(hn::IsNaN(x), x, hn::CopySignToAbs(hn::Tanh(d, bounded), x));
}

// Beyond these angles the reduction of hn::Sin and hn::Cos loses digits.
template <class D, class V>
HWY_INLINE bool all_small_angles(D d, V x) {
  return hn::AllTrue(d, hn::Lt(hn::Abs(x), hn::Set(d, 30000)));
}
template <class D, class V>
HWY_INLINE V sin(D d, V x) {
  using T = hn::TFromD<D>;
  if (all_small_angles(d, x)) {
    return hn::Sin(d, x);
  }
  return lane_by_lane(d, x, [](T angle) { return std::sin(angle); });
}
template <class D, class V>
HWY_INLINE V cos(D d, V x) {
  using T = hn::TFromD<D>;
  if (all_small_angles(d, x)) {
    return hn::Cos(d, x);
  }
  return lane_by_lane(d, x, [](T angle) { return std::cos(angle); });
}

// φ(x) = e^(−x²/2) / √2π and Φ(x) = ∫ φ up to x, of the standard normal distribution.
template <class V>
struct Normal {
  V density;
  V cumulative;
};

// With z = |x| / √2 and t = 2 / (2 + z) in (0, 1], erfc(z) = e^(−z²) t R(t), where R is the
// polynomial of degree 8 that meets e^(z²) erfc(z) / t at the Chebyshev nodes of z ≤ 10: relative
// error 5e-8, so that Φ keeps its digits in the lower tail too.
template <class D, class V>
HWY_INLINE Normal<V> normal_single(D d, V x) {
  const V bell = exp(d, hn::Mul(hn::Mul(x, x), hn::Set(d, -0.5F)));
  const V z = hn::Mul(hn::Abs(x), hn::Set(d, 0.707106781F));
  const V t = hn::Div(hn::Set(d, 2.0F), hn::Add(hn::Set(d, 2.0F), z));
  V r = hn::Set(d, -0.059714919F);
  r = hn::MulAdd(r, t, hn::Set(d, 0.28776831F));
  r = hn::MulAdd(r, t, hn::Set(d, -0.493863649F));
  r = hn::MulAdd(r, t, hn::Set(d, 0.28569771F));
  r = hn::MulAdd(r, t, hn::Set(d, -0.0318417574F));
  r = hn::MulAdd(r, t, hn::Set(d, 0.204853655F));
  r = hn::MulAdd(r, t, hn::Set(d, 0.242572893F));
  r = hn::MulAdd(r, t, hn::Set(d, 0.282445042F));
  r = hn::MulAdd(r, t, hn::Set(d, 0.282082674F));
  const V tail = hn::Mul(hn::Mul(hn::Set(d, 0.5F), t), hn::Mul(r, bell));
  const V above = hn::Sub(hn::Set(d, 1.0F), tail);
  return {hn::Mul(bell, hn::Set(d, 0.398942280F)),
          hn::IfThenElse(hn::Gt(x, hn::Zero(d)), above, tail)};
}

template <class D, class V>
HWY_INLINE Normal<V> normal(D d, V x) {
  if constexpr (is_single<D>) {
    return normal_single(d, x);
  } else {
    const V bell = exp(d, hn::Mul(hn::Mul(x, x), hn::Set(d, -0.5)));
    const V cumulative =
        lane_by_lane(d, x, [](double at) { return 0.5 * std::erfc(at * -0.70710678118654752440); });
    return {hn::Mul(bell, hn::Set(d, 0.39894228040143267794)), cumulative};
  }
}

}  // namespace ingot::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
