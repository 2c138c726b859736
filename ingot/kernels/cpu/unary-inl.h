// The functions of one number: value and derivative of each side by side. To add one: a struct, its
// place in UnaryList, its enumerator in kernels/elementwise.h. Included once per Highway target.
//
//   f(d, x, c)         the value at x
//   slope(d, kept, c)  the derivative, from x or from y = f(x), as `from` says
// c holds the constants of the call.
#if defined(INGOT_KERNELS_CPU_UNARY_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef INGOT_KERNELS_CPU_UNARY_INL_H_
#undef INGOT_KERNELS_CPU_UNARY_INL_H_
#else
#define INGOT_KERNELS_CPU_UNARY_INL_H_
#endif

#include "ingot/kernels/cpu/lanes-inl.h"
#include "ingot/kernels/cpu/math-inl.h"
#include "ingot/kernels/elementwise.h"

HWY_BEFORE_NAMESPACE();
namespace ingot::kernels::HWY_NAMESPACE {

template <Unary function, Keeps kept>
struct Entry {
  static constexpr Unary is = function;
  static constexpr Keeps from = kept;
};

// max(x, 0), NaN of NaN.
template <class D, class V>
HWY_INLINE V positive_part(D d, V x) {
  return hn::IfThenElse(hn::Lt(x, hn::Zero(d)), hn::Zero(d), x);
}
template <class D, class V>
HWY_INLINE V one_minus(D d, V x) {
  return hn::Sub(hn::Set(d, 1), x);
}
// `value` in the lanes of the mask, 0 elsewhere.
template <class D, class M>
HWY_INLINE hn::VFromD<D> value_where(D d, M mask, double value) {
  return hn::IfThenElseZero(mask, hn::Set(d, static_cast<hn::TFromD<D>>(value)));
}

struct Exp : Entry<Unary::exp, Keeps::result> {
  template <class D, class V>
  static HWY_INLINE V f(D d, V x, const UnaryCall&) {
    return exp(d, x);
  }
  template <class D, class V>
  static HWY_INLINE V slope(D, V y, const UnaryCall&) {
    return y;
  }
};

struct Log : Entry<Unary::log, Keeps::argument> {
  template <class D, class V>
  static HWY_INLINE V f(D d, V x, const UnaryCall&) {
    return log(d, x);
  }
  template <class D, class V>
  static HWY_INLINE V slope(D d, V x, const UnaryCall&) {
    return hn::Div(hn::Set(d, 1), x);
  }
};

struct Sqrt : Entry<Unary::sqrt, Keeps::result> {
  template <class D, class V>
  static HWY_INLINE V f(D, V x, const UnaryCall&) {
    return hn::Sqrt(x);
  }
  template <class D, class V>
  static HWY_INLINE V slope(D d, V y, const UnaryCall&) {
    return hn::Div(hn::Set(d, hn::TFromD<D>(0.5)), y);
  }
};

struct Rsqrt : Entry<Unary::rsqrt, Keeps::result> {
  template <class D, class V>
  static HWY_INLINE V f(D d, V x, const UnaryCall&) {
    return hn::Div(hn::Set(d, 1), hn::Sqrt(x));
  }
  template <class D, class V>
  static HWY_INLINE V slope(D d, V y, const UnaryCall&) {  // −½ y³
    return hn::Mul(hn::Mul(hn::Set(d, hn::TFromD<D>(-0.5)), y), hn::Mul(y, y));
  }
};

struct Square : Entry<Unary::square, Keeps::argument> {
  template <class D, class V>
  static HWY_INLINE V f(D, V x, const UnaryCall&) {
    return hn::Mul(x, x);
  }
  template <class D, class V>
  static HWY_INLINE V slope(D, V x, const UnaryCall&) {
    return hn::Add(x, x);
  }
};

struct Pow : Entry<Unary::pow, Keeps::argument> {
  template <class D, class V>
  static HWY_INLINE V f(D d, V x, const UnaryCall& c) {
    using T = hn::TFromD<D>;
    return lane_by_lane(d, x, [e = static_cast<T>(c.first)](T v) { return std::pow(v, e); });
  }
  template <class D, class V>
  static HWY_INLINE V slope(D d, V x, const UnaryCall& c) {
    using T = hn::TFromD<D>;
    return lane_by_lane(d, x, [e = static_cast<T>(c.first)](T v) {
      return e == 0 ? T(0) : e * std::pow(v, e - 1);
    });
  }
};

struct Abs : Entry<Unary::abs, Keeps::argument> {
  template <class D, class V>
  static HWY_INLINE V f(D, V x, const UnaryCall&) {
    return hn::Abs(x);
  }
  template <class D, class V>
  static HWY_INLINE V slope(D d, V x, const UnaryCall&) {
    return hn::IfThenElseZero(hn::Ne(x, hn::Zero(d)), hn::CopySign(hn::Set(d, 1), x));
  }
};

struct Clamp : Entry<Unary::clamp, Keeps::argument> {
  template <class D, class V>
  static HWY_INLINE V f(D d, V x, const UnaryCall& c) {
    using T = hn::TFromD<D>;
    const V low = hn::Set(d, static_cast<T>(c.first));
    const V high = hn::Set(d, static_cast<T>(c.second));
    return hn::IfThenElse(hn::IsNaN(x), x, hn::Min(hn::Max(x, low), high));
  }
  template <class D, class V>
  static HWY_INLINE V slope(D d, V x, const UnaryCall& c) {
    using T = hn::TFromD<D>;
    const auto above = hn::Ge(x, hn::Set(d, static_cast<T>(c.first)));
    const auto below = hn::Le(x, hn::Set(d, static_cast<T>(c.second)));
    return value_where(d, hn::And(above, below), 1);
  }
};

struct Sin : Entry<Unary::sin, Keeps::argument> {
  template <class D, class V>
  static HWY_INLINE V f(D d, V x, const UnaryCall&) {
    return sin(d, x);
  }
  template <class D, class V>
  static HWY_INLINE V slope(D d, V x, const UnaryCall&) {
    return cos(d, x);
  }
};

struct Cos : Entry<Unary::cos, Keeps::argument> {
  template <class D, class V>
  static HWY_INLINE V f(D d, V x, const UnaryCall&) {
    return cos(d, x);
  }
  template <class D, class V>
  static HWY_INLINE V slope(D d, V x, const UnaryCall&) {
    return hn::Neg(sin(d, x));
  }
};

struct Relu : Entry<Unary::relu, Keeps::result> {
  template <class D, class V>
  static HWY_INLINE V f(D d, V x, const UnaryCall&) {
    return positive_part(d, x);
  }
  template <class D, class V>
  static HWY_INLINE V slope(D d, V y, const UnaryCall&) {
    return value_where(d, hn::Gt(y, hn::Zero(d)), 1);
  }
};

struct ReluSquared : Entry<Unary::relu_squared, Keeps::argument> {
  template <class D, class V>
  static HWY_INLINE V f(D d, V x, const UnaryCall&) {
    const V part = positive_part(d, x);
    return hn::Mul(part, part);
  }
  template <class D, class V>
  static HWY_INLINE V slope(D d, V x, const UnaryCall&) {
    const V part = positive_part(d, x);
    return hn::Add(part, part);
  }
};

struct Sigmoid : Entry<Unary::sigmoid, Keeps::result> {
  template <class D, class V>
  static HWY_INLINE V f(D d, V x, const UnaryCall&) {
    return sigmoid(d, x);
  }
  template <class D, class V>
  static HWY_INLINE V slope(D d, V y, const UnaryCall&) {
    return hn::Mul(y, one_minus(d, y));
  }
};

struct LogSigmoid : Entry<Unary::log_sigmoid, Keeps::argument> {
  template <class D, class V>
  static HWY_INLINE V f(D d, V x, const UnaryCall&) {  // min(x, 0) − log(1 + e^−|x|)
    return hn::Sub(hn::Neg(positive_part(d, hn::Neg(x))), log1p_exp_minus_abs(d, x));
  }
  template <class D, class V>
  static HWY_INLINE V slope(D d, V x, const UnaryCall&) {
    return sigmoid(d, hn::Neg(x));
  }
};

struct Softplus : Entry<Unary::softplus, Keeps::argument> {
  template <class D, class V>
  static HWY_INLINE V f(D d, V x, const UnaryCall&) {  // max(x, 0) + log(1 + e^−|x|)
    return hn::Add(positive_part(d, x), log1p_exp_minus_abs(d, x));
  }
  template <class D, class V>
  static HWY_INLINE V slope(D d, V x, const UnaryCall&) {
    return sigmoid(d, x);
  }
};

struct Tanh : Entry<Unary::tanh, Keeps::result> {
  template <class D, class V>
  static HWY_INLINE V f(D d, V x, const UnaryCall&) {
    return tanh(d, x);
  }
  template <class D, class V>
  static HWY_INLINE V slope(D d, V y, const UnaryCall&) {
    return hn::NegMulAdd(y, y, hn::Set(d, 1));
  }
};

struct Silu : Entry<Unary::silu, Keeps::argument> {
  template <class D, class V>
  static HWY_INLINE V f(D d, V x, const UnaryCall&) {
    return hn::Mul(x, sigmoid(d, x));
  }
  template <class D, class V>
  static HWY_INLINE V slope(D d, V x, const UnaryCall&) {  // σ (1 + x (1 − σ))
    const V s = sigmoid(d, x);
    return hn::Mul(s, hn::MulAdd(x, one_minus(d, s), hn::Set(d, 1)));
  }
};

struct Gelu : Entry<Unary::gelu, Keeps::argument> {
  template <class D, class V>
  static HWY_INLINE V f(D d, V x, const UnaryCall&) {
    return hn::Mul(x, normal(d, x).cumulative);
  }
  template <class D, class V>
  static HWY_INLINE V slope(D d, V x, const UnaryCall&) {
    const Normal<V> n = normal(d, x);
    return hn::MulAdd(x, n.density, n.cumulative);
  }
};

struct GeluSlope : Entry<Unary::gelu_slope, Keeps::argument> {
  template <class D, class V>
  static HWY_INLINE V f(D d, V x, const UnaryCall& c) {
    return Gelu::slope(d, x, c);
  }
  template <class D, class V>
  static HWY_INLINE V slope(D d, V x, const UnaryCall&) {  // φ (2 − x²)
    return hn::Mul(normal(d, x).density, hn::NegMulAdd(x, x, hn::Set(d, 2)));
  }
};

// With u = √(2/π) (x + 0.044715 x³), ½ (1 + tanh u) = σ(2u), which keeps its digits for negative x.
struct GeluTanh : Entry<Unary::gelu_tanh, Keeps::argument> {
  static constexpr double scale = 1.5957691216057307118;  // 2 √(2/π)
  static constexpr double cubic = 0.044715;

  template <class D, class V>
  static HWY_INLINE V gate(D d, V x) {
    using T = hn::TFromD<D>;
    const V bracket = hn::MulAdd(hn::Set(d, static_cast<T>(cubic)), hn::Mul(x, x), hn::Set(d, 1));
    return sigmoid(d, hn::Mul(hn::Mul(hn::Set(d, static_cast<T>(scale)), x), bracket));
  }
  template <class D, class V>
  static HWY_INLINE V f(D d, V x, const UnaryCall&) {
    return hn::Mul(x, gate(d, x));
  }
  template <class D, class V>
  static HWY_INLINE V slope(D d, V at, const UnaryCall&) {  // σ + x σ (1 − σ) 2u'
    using T = hn::TFromD<D>;
    // Beyond ±50 σ is 0 or 1 exactly; the bound keeps x³ finite.
    const V bounded = hn::Min(hn::Max(at, hn::Set(d, -50)), hn::Set(d, 50));
    const V x = hn::IfThenElse(hn::IsNaN(at), at, bounded);
    const V s = gate(d, x);
    const V bracket =
        hn::MulAdd(hn::Set(d, static_cast<T>(3 * cubic)), hn::Mul(x, x), hn::Set(d, 1));
    const V inner = hn::Mul(hn::Mul(hn::Set(d, static_cast<T>(scale)), x), bracket);
    return hn::MulAdd(hn::Mul(s, one_minus(d, s)), inner, s);
  }
};

template <class... Entries>
struct TypeList {
  static constexpr int64_t size = sizeof...(Entries);
};
using UnaryList =
    TypeList<Exp, Log, Sqrt, Rsqrt, Square, Pow, Abs, Clamp, Sin, Cos, Relu, ReluSquared, Sigmoid,
             LogSigmoid, Softplus, Tanh, Silu, Gelu, GeluSlope, GeluTanh>;
static_assert(UnaryList::size == unary_count, "an enumerator of Unary without its struct");

// Calls f.template operator()<Struct>() with the struct of `wanted`.
template <class F, class... Entries>
void visit_unary(Unary wanted, TypeList<Entries...>, F&& f) {
  ((Entries::is == wanted ? f.template operator()<Entries>() : void()), ...);
}

}  // namespace ingot::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
