// Updates of single elements beyond Adam's and SGD's.
#include "ingot/kernels/optim.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ingot/kernels/cpu/optim_adaptive.cpp"
#include <hwy/foreach_target.h>
// clang-format off
#include <hwy/highway.h>
#include "ingot/kernels/cpu/update-inl.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace ingot::kernels::HWY_NAMESPACE {
namespace {

// 1, −1 or 0; NaN stays.
template <class D, class V>
HWY_INLINE V sign_of(D d, V x) {
  const auto zero = hn::Zero(d);
  return hn::IfThenElse(hn::Gt(x, zero), all(d, 1), hn::IfThenElse(hn::Lt(x, zero), all(d, -1), x));
}

void lion_all(const LionNumbers& numbers, const ConstView& g, const View& p, const View& m,
              const View& rounded) {
  one_pass<1>(g, p, {m}, rounded, [a = numbers](auto d, auto w, auto gradient, auto* s) {
    const auto grad = hn::Mul(all(d, a.scale), gradient);
    const auto mixed = hn::MulAdd(all(d, 1 - a.beta1), grad, hn::Mul(all(d, a.beta1), s[0]));
    s[0] = hn::MulAdd(all(d, 1 - a.beta2), grad, hn::Mul(all(d, a.beta2), s[0]));
    return hn::NegMulAdd(all(d, a.rate), sign_of(d, mixed), hn::Mul(all(d, a.keep), w));
  });
}

void adagrad_all(const AdagradNumbers& numbers, const ConstView& g, const View& p, const View& sum,
                 const View& rounded) {
  one_pass<1>(g, p, {sum}, rounded, [a = numbers](auto d, auto w, auto gradient, auto* s) {
    const auto grad = hn::MulAdd(all(d, a.l2), w, hn::Mul(all(d, a.scale), gradient));
    s[0] = hn::MulAdd(grad, grad, s[0]);
    const auto step = hn::Div(grad, hn::Add(hn::Sqrt(s[0]), all(d, a.eps)));
    return hn::NegMulAdd(all(d, a.rate), step, hn::Mul(all(d, a.keep), w));
  });
}

// Where `average` or `b` have no data, the state is the shorter by them.
template <bool centered, bool buffered>
void rmsprop_form(const RmspropNumbers& numbers, const ConstView& g, const View& p, const View& v,
                  const View& average, const View& b, const View& rounded) {
  constexpr size_t count = 1 + centered + buffered;
  std::array<View, count> state = {v};
  if constexpr (centered) {
    state[1] = average;
  }
  if constexpr (buffered) {
    state[count - 1] = b;
  }
  one_pass<count>(g, p, state, rounded, [a = numbers](auto d, auto w, auto gradient, auto* s) {
    const auto grad = hn::MulAdd(all(d, a.l2), w, hn::Mul(all(d, a.scale), gradient));
    s[0] = hn::MulAdd(hn::Mul(all(d, 1 - a.alpha), grad), grad, hn::Mul(all(d, a.alpha), s[0]));
    auto spread = s[0];
    if constexpr (centered) {
      s[1] = hn::MulAdd(all(d, 1 - a.alpha), grad, hn::Mul(all(d, a.alpha), s[1]));
      spread = hn::Max(hn::NegMulAdd(s[1], s[1], s[0]), hn::Zero(d));  // rounding can go below 0
    }
    const auto eps = all(d, a.eps);
    const auto divisor =
        a.eps_inside ? hn::Sqrt(hn::Add(spread, eps)) : hn::Add(hn::Sqrt(spread), eps);
    auto step = hn::Div(grad, divisor);
    if constexpr (buffered) {
      step = hn::MulAdd(all(d, a.momentum), s[count - 1], step);
      s[count - 1] = step;
    }
    return hn::NegMulAdd(all(d, a.rate), step, hn::Mul(all(d, a.keep), w));
  });
}

void rmsprop_all(const RmspropNumbers& a, const ConstView& g, const View& p, const View& v,
                 const View& average, const View& b, const View& rounded) {
  if (average.data != nullptr) {
    b.data != nullptr ? rmsprop_form<true, true>(a, g, p, v, average, b, rounded)
                      : rmsprop_form<true, false>(a, g, p, v, average, b, rounded);
  } else {
    b.data != nullptr ? rmsprop_form<false, true>(a, g, p, v, average, b, rounded)
                      : rmsprop_form<false, false>(a, g, p, v, average, b, rounded);
  }
}

void ademamix_all(const AdemamixNumbers& numbers, const ConstView& g, const View& p, const View& m,
                  const View& slow, const View& v, const View& rounded) {
  one_pass<3>(g, p, {m, slow, v}, rounded, [a = numbers](auto d, auto w, auto gradient, auto* s) {
    const auto grad = hn::Mul(all(d, a.scale), gradient);
    s[0] = hn::MulAdd(all(d, 1 - a.beta1), grad, hn::Mul(all(d, a.beta1), s[0]));
    s[1] = hn::MulAdd(all(d, 1 - a.beta3), grad, hn::Mul(all(d, a.beta3), s[1]));
    s[2] = hn::MulAdd(hn::Mul(all(d, 1 - a.beta2), grad), grad, hn::Mul(all(d, a.beta2), s[2]));
    const auto both = hn::MulAdd(all(d, a.alpha), s[1], hn::Mul(all(d, a.correct), s[0]));
    const auto divisor = hn::MulAdd(all(d, a.root_scale), hn::Sqrt(s[2]), all(d, a.eps));
    return hn::NegMulAdd(all(d, a.rate), hn::Div(both, divisor), hn::Mul(all(d, a.keep), w));
  });
}

void sophia_all(const SophiaNumbers& numbers, const ConstView& g, const View& p, const View& m,
                const View& h, const View& rounded) {
  one_pass<2>(g, p, {m, h}, rounded, [a = numbers](auto d, auto w, auto gradient, auto* s) {
    const auto grad = hn::Mul(all(d, a.scale), gradient);
    s[0] = hn::MulAdd(all(d, 1 - a.beta1), grad, hn::Mul(all(d, a.beta1), s[0]));
    const auto curved = hn::Mul(all(d, a.gamma), s[1]);
    const auto eps = all(d, a.eps);
    const auto step = hn::Div(s[0], a.add_eps ? hn::Add(curved, eps) : hn::Max(curved, eps));
    const auto one = all(d, 1);
    const auto clipped = hn::IfThenElse(
        hn::Gt(step, one), one, hn::IfThenElse(hn::Lt(step, hn::Neg(one)), hn::Neg(one), step));
    return hn::NegMulAdd(all(d, a.rate), clipped, hn::Mul(all(d, a.keep), w));
  });
}

void momentum_all(const MomentumNumbers& numbers, const ConstView& g, const View& b,
                  const View& u) {
  one_pass<1>(g, u, {b}, View(), [a = numbers](auto d, auto, auto gradient, auto* s) {
    const auto grad = hn::Mul(all(d, a.scale), gradient);
    s[0] = hn::MulAdd(all(d, a.take), grad, hn::Mul(all(d, a.hold), s[0]));
    return hn::MulAdd(all(d, a.from_gradient), grad, hn::Mul(all(d, a.from_buffer), s[0]));
  });
}

void adam_direction_all(const AdamDirection& numbers, const ConstView& g, const View& p,
                        const View& m, const View& v, const View& r) {
  one_pass<3>(g, r, {m, v, p}, View(), [a = numbers](auto d, auto, auto gradient, auto* s) {
    const auto grad = hn::Mul(all(d, a.scale), gradient);
    s[0] = hn::MulAdd(all(d, 1 - a.beta1), grad, hn::Mul(all(d, a.beta1), s[0]));
    s[1] = hn::MulAdd(hn::Mul(all(d, 1 - a.beta2), grad), grad, hn::Mul(all(d, a.beta2), s[1]));
    const auto divisor = hn::MulAdd(all(d, a.root_scale), hn::Sqrt(s[1]), all(d, a.eps));
    const auto step = hn::Div(hn::Mul(all(d, a.correct), s[0]), divisor);
    return hn::MulAdd(all(d, a.decay), s[2], step);
  });
}

}  // namespace
}  // namespace ingot::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ingot::kernels {

HWY_EXPORT(lion_all);
HWY_EXPORT(adagrad_all);
HWY_EXPORT(rmsprop_all);
HWY_EXPORT(ademamix_all);
HWY_EXPORT(sophia_all);
HWY_EXPORT(momentum_all);
HWY_EXPORT(adam_direction_all);

void lion(const Cpu&, const LionNumbers& numbers, const ConstView& g, const View& p, const View& m,
          const View& rounded) {
  HWY_DYNAMIC_DISPATCH(lion_all)(numbers, g, p, m, rounded);
}

void adagrad(const Cpu&, const AdagradNumbers& numbers, const ConstView& g, const View& p,
             const View& s, const View& rounded) {
  HWY_DYNAMIC_DISPATCH(adagrad_all)(numbers, g, p, s, rounded);
}

void rmsprop(const Cpu&, const RmspropNumbers& numbers, const ConstView& g, const View& p,
             const View& v, const View& average, const View& b, const View& rounded) {
  HWY_DYNAMIC_DISPATCH(rmsprop_all)(numbers, g, p, v, average, b, rounded);
}

void ademamix(const Cpu&, const AdemamixNumbers& numbers, const ConstView& g, const View& p,
              const View& m, const View& s, const View& v, const View& rounded) {
  HWY_DYNAMIC_DISPATCH(ademamix_all)(numbers, g, p, m, s, v, rounded);
}

void sophia(const Cpu&, const SophiaNumbers& numbers, const ConstView& g, const View& p,
            const View& m, const View& h, const View& rounded) {
  HWY_DYNAMIC_DISPATCH(sophia_all)(numbers, g, p, m, h, rounded);
}

void momentum(const Cpu&, const MomentumNumbers& numbers, const ConstView& g, const View& b,
              const View& u) {
  HWY_DYNAMIC_DISPATCH(momentum_all)(numbers, g, b, u);
}

void adam_direction(const Cpu&, const AdamDirection& numbers, const ConstView& g, const View& p,
                    const View& m, const View& v, const View& r) {
  HWY_DYNAMIC_DISPATCH(adam_direction_all)(numbers, g, p, m, v, r);
}

}  // namespace ingot::kernels
#endif
