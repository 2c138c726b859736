#include "ingot/kernels/optim.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ingot/kernels/cpu/optim.cpp"
#include <hwy/foreach_target.h>
// clang-format off
#include <hwy/highway.h>
#include "ingot/kernels/cpu/update-inl.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace ingot::kernels::HWY_NAMESPACE {
namespace {

void adam_all(const AdamNumbers& numbers, const ConstView& g, const View& p, const View& m,
              const View& v, const View& most, const View& rounded) {
  const auto step = [a = numbers]<bool amsgrad>(auto d, auto w, auto gradient, auto* s) {
    const auto grad = hn::MulAdd(all(d, a.l2), w, hn::Mul(all(d, a.scale), gradient));
    s[0] = hn::MulAdd(all(d, 1 - a.beta1), grad, hn::Mul(all(d, a.beta1), s[0]));
    s[1] = hn::MulAdd(hn::Mul(all(d, 1 - a.beta2), grad), grad, hn::Mul(all(d, a.beta2), s[1]));
    auto second = s[1];
    if constexpr (amsgrad) {
      s[2] = hn::Max(s[1], s[2]);
      second = s[2];
    }
    const auto divisor = hn::MulAdd(all(d, a.root_scale), hn::Sqrt(second), all(d, a.eps));
    return hn::NegMulAdd(all(d, a.rate), hn::Div(s[0], divisor), hn::Mul(all(d, a.keep), w));
  };
  if (most.data != nullptr) {
    one_pass<3>(g, p, {m, v, most}, rounded, [step](auto d, auto w, auto gradient, auto* s) {
      return step.template operator()<true>(d, w, gradient, s);
    });
  } else {
    one_pass<2>(g, p, {m, v}, rounded, [step](auto d, auto w, auto gradient, auto* s) {
      return step.template operator()<false>(d, w, gradient, s);
    });
  }
}

void sgd_all(const SgdNumbers& numbers, const ConstView& g, const View& p, const View& b,
             const View& rounded) {
  if (b.data == nullptr) {
    one_pass<0>(g, p, {}, rounded, [a = numbers](auto d, auto w, auto gradient, auto*) {
      const auto grad = hn::MulAdd(all(d, a.l2), w, hn::Mul(all(d, a.scale), gradient));
      return hn::NegMulAdd(all(d, a.rate), grad, hn::Mul(all(d, a.keep), w));
    });
    return;
  }
  one_pass<1>(g, p, {b}, rounded, [a = numbers](auto d, auto w, auto gradient, auto* s) {
    const auto grad = hn::MulAdd(all(d, a.l2), w, hn::Mul(all(d, a.scale), gradient));
    s[0] = hn::MulAdd(all(d, a.hold), s[0], hn::Mul(all(d, a.take), grad));
    // from_gradient·grad + from_buffer·b covers the plain and the Nesterov form.
    const auto from_gradient = all(d, a.nesterov ? 1 : 0);
    const auto from_buffer = all(d, a.nesterov ? a.momentum : 1);
    const auto direction = hn::MulAdd(from_gradient, grad, hn::Mul(from_buffer, s[0]));
    return hn::NegMulAdd(all(d, a.rate), direction, hn::Mul(all(d, a.keep), w));
  });
}

// x ← f(lanes of x)
template <class F>
void in_place(const View& x, F&& f) {
  visit_float(x.dtype, "in place", [&]<class T>() {
    const Lanes<T> d;
    T* values = x.as<T>();
    parallel_for(x.elements(), update_grain, [&](int64_t begin, int64_t end) {
      each(d, end - begin, [&](int64_t offset, int64_t n) {
        T* at = values + begin + offset;
        store_some(d, f(d, load_some(d, at, n)), at, n);
      });
    });
  });
}

void scale_all(double factor, const View& x) {
  in_place(x, [&](auto d, auto value) {
    return hn::Mul(value, hn::Set(d, static_cast<hn::TFromD<decltype(d)>>(factor)));
  });
}

void clamp_all(double limit, const View& x) {
  in_place(x, [&](auto d, auto value) {
    const auto high = hn::Set(d, static_cast<hn::TFromD<decltype(d)>>(limit));
    const auto low = hn::Neg(high);
    // Comparisons with NaN are false, so NaN passes.
    return hn::IfThenElse(hn::Gt(value, high), high,
                          hn::IfThenElse(hn::Lt(value, low), low, value));
  });
}

}  // namespace
}  // namespace ingot::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ingot::kernels {

HWY_EXPORT(adam_all);
HWY_EXPORT(sgd_all);
HWY_EXPORT(scale_all);
HWY_EXPORT(clamp_all);

void adam(const Cpu&, const AdamNumbers& numbers, const ConstView& g, const View& p, const View& m,
          const View& v, const View& most, const View& rounded) {
  HWY_DYNAMIC_DISPATCH(adam_all)(numbers, g, p, m, v, most, rounded);
}

void sgd(const Cpu&, const SgdNumbers& numbers, const ConstView& g, const View& p, const View& b,
         const View& rounded) {
  HWY_DYNAMIC_DISPATCH(sgd_all)(numbers, g, p, b, rounded);
}

void scale_in_place(const Cpu&, double factor, const View& x) {
  HWY_DYNAMIC_DISPATCH(scale_all)(factor, x);
}

void clamp_magnitude(const Cpu&, double limit, const View& x) {
  HWY_DYNAMIC_DISPATCH(clamp_all)(limit, x);
}

}  // namespace ingot::kernels
#endif
