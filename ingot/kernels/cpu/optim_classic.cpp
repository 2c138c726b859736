#include "ingot/kernels/optim_classic.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ingot/kernels/cpu/optim_classic.cpp"
#include <hwy/foreach_target.h>
// clang-format off
#include <hwy/highway.h>
#include "ingot/kernels/cpu/update-inl.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace ingot::kernels::HWY_NAMESPACE {
namespace {

void adamax_all(const AdamaxNumbers& numbers, const ConstView& g, const View& p, const View& m,
                const View& u, const View& rounded) {
  one_pass<2>(g, p, {m, u}, rounded, [a = numbers](auto d, auto w, auto gradient, auto* s) {
    const auto grad = hn::MulAdd(all(d, a.l2), w, hn::Mul(all(d, a.scale), gradient));
    s[0] = hn::MulAdd(all(d, 1 - a.beta1), grad, hn::Mul(all(d, a.beta1), s[0]));
    s[1] = hn::Max(hn::Mul(all(d, a.beta2), s[1]), hn::Add(hn::Abs(grad), all(d, a.eps)));
    return hn::NegMulAdd(all(d, a.rate), hn::Div(s[0], s[1]), w);
  });
}

void nadam_all(const NadamNumbers& numbers, const ConstView& g, const View& p, const View& m,
               const View& v, const View& rounded) {
  one_pass<2>(g, p, {m, v}, rounded, [a = numbers](auto d, auto w, auto gradient, auto* s) {
    const auto grad = hn::MulAdd(all(d, a.l2), w, hn::Mul(all(d, a.scale), gradient));
    s[0] = hn::MulAdd(all(d, 1 - a.beta1), grad, hn::Mul(all(d, a.beta1), s[0]));
    s[1] = hn::MulAdd(hn::Mul(all(d, 1 - a.beta2), grad), grad, hn::Mul(all(d, a.beta2), s[1]));
    const auto both =
        hn::MulAdd(all(d, a.from_gradient), grad, hn::Mul(all(d, a.from_moment), s[0]));
    const auto divisor = hn::MulAdd(all(d, a.root_scale), hn::Sqrt(s[1]), all(d, a.eps));
    return hn::Sub(w, hn::Div(both, divisor));
  });
}

void adadelta_all(const AdadeltaNumbers& numbers, const ConstView& g, const View& p, const View& v,
                  const View& moved, const View& rounded) {
  one_pass<2>(g, p, {v, moved}, rounded, [a = numbers](auto d, auto w, auto gradient, auto* s) {
    const auto grad = hn::MulAdd(all(d, a.l2), w, hn::Mul(all(d, a.scale), gradient));
    s[0] = hn::MulAdd(hn::Mul(all(d, 1 - a.rho), grad), grad, hn::Mul(all(d, a.rho), s[0]));
    const auto eps = all(d, a.eps);
    const auto step =
        hn::Mul(hn::Div(hn::Sqrt(hn::Add(s[1], eps)), hn::Sqrt(hn::Add(s[0], eps))), grad);
    s[1] = hn::MulAdd(hn::Mul(all(d, 1 - a.rho), step), step, hn::Mul(all(d, a.rho), s[1]));
    return hn::NegMulAdd(all(d, a.rate), step, w);
  });
}

void rprop_all(const RpropNumbers& numbers, const ConstView& g, const View& p, const View& before,
               const View& size, const View& rounded) {
  one_pass<2>(g, p, {before, size}, rounded, [a = numbers](auto d, auto w, auto gradient, auto* s) {
    const auto zero = hn::Zero(d);
    const auto grad = hn::Mul(all(d, a.scale), gradient);
    const auto product = hn::Mul(grad, s[0]);
    const auto turned = hn::Lt(product, zero);
    const auto factor = hn::IfThenElse(hn::Gt(product, zero), all(d, a.grow),
                                       hn::IfThenElse(turned, all(d, a.shrink), all(d, 1)));
    s[1] = hn::Min(hn::Max(hn::Mul(s[1], factor), all(d, a.least)), all(d, a.most));
    s[0] = hn::IfThenElse(turned, zero, grad);
    const auto sign = hn::IfThenElse(hn::Gt(s[0], zero), all(d, 1),
                                     hn::IfThenElse(hn::Lt(s[0], zero), all(d, -1), s[0]));
    return hn::NegMulAdd(hn::Mul(all(d, a.rate), s[1]), sign, w);
  });
}

}  // namespace
}  // namespace ingot::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ingot::kernels {

HWY_EXPORT(adamax_all);
HWY_EXPORT(nadam_all);
HWY_EXPORT(adadelta_all);
HWY_EXPORT(rprop_all);

void adamax(const Cpu&, const AdamaxNumbers& numbers, const ConstView& g, const View& p,
            const View& m, const View& u, const View& rounded) {
  HWY_DYNAMIC_DISPATCH(adamax_all)(numbers, g, p, m, u, rounded);
}

void nadam(const Cpu&, const NadamNumbers& numbers, const ConstView& g, const View& p,
           const View& m, const View& v, const View& rounded) {
  HWY_DYNAMIC_DISPATCH(nadam_all)(numbers, g, p, m, v, rounded);
}

void adadelta(const Cpu&, const AdadeltaNumbers& numbers, const ConstView& g, const View& p,
              const View& v, const View& a, const View& rounded) {
  HWY_DYNAMIC_DISPATCH(adadelta_all)(numbers, g, p, v, a, rounded);
}

void rprop(const Cpu&, const RpropNumbers& numbers, const ConstView& g, const View& p,
           const View& b, const View& s, const View& rounded) {
  HWY_DYNAMIC_DISPATCH(rprop_all)(numbers, g, p, b, s, rounded);
}

}  // namespace ingot::kernels
#endif
