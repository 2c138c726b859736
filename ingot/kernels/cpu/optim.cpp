#include "ingot/kernels/optim.h"

#include "ingot/kernels/cpu/parallel.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ingot/kernels/cpu/optim.cpp"
#include <hwy/foreach_target.h>
// clang-format off
#include <hwy/highway.h>
#include "ingot/kernels/cpu/lanes-inl.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace ingot::kernels::HWY_NAMESPACE {
namespace {

constexpr int64_t grain = 16384;  // elements: a part's start-up is small beside its work

template <class T, class R>
struct AdamArrays {
  const T* g;
  T* p;
  T* m;
  T* v;
  T* most;     // null without AMSGrad
  R* rounded;  // unused when R is T
};

template <bool amsgrad, class T, class R>
void adam_part(const AdamNumbers& a, const AdamArrays<T, R>& x, int64_t begin, int64_t end) {
  const Lanes<T> d;
  const auto set = [&](double value) { return hn::Set(d, static_cast<T>(value)); };
  const auto scale = set(a.scale);
  const auto l2 = set(a.l2);
  const auto beta1 = set(a.beta1);
  const auto rest1 = set(1 - a.beta1);
  const auto beta2 = set(a.beta2);
  const auto rest2 = set(1 - a.beta2);
  const auto keep = set(a.keep);
  const auto rate = set(a.rate);
  const auto root_scale = set(a.root_scale);
  const auto eps = set(a.eps);
  each(d, end - begin, [&](int64_t offset, int64_t n) {
    const int64_t i = begin + offset;
    const auto p = load_some(d, x.p + i, n);
    const auto g = hn::MulAdd(l2, p, hn::Mul(scale, load_some(d, x.g + i, n)));
    const auto m = hn::MulAdd(rest1, g, hn::Mul(beta1, load_some(d, x.m + i, n)));
    const auto v = hn::MulAdd(hn::Mul(rest2, g), g, hn::Mul(beta2, load_some(d, x.v + i, n)));
    store_some(d, m, x.m + i, n);
    store_some(d, v, x.v + i, n);
    auto second = v;
    if constexpr (amsgrad) {
      second = hn::Max(v, load_some(d, x.most + i, n));
      store_some(d, second, x.most + i, n);
    }
    const auto denominator = hn::MulAdd(root_scale, hn::Sqrt(second), eps);
    const auto moved = hn::NegMulAdd(rate, hn::Div(m, denominator), hn::Mul(keep, p));
    store_some(d, moved, x.p + i, n);
    if constexpr (!std::is_same_v<T, R>) {
      store_some(d, moved, x.rounded + i, n);
    }
  });
}

template <class T, class R>
struct SgdArrays {
  const T* g;
  T* p;
  T* b;        // null without momentum
  R* rounded;  // unused when R is T
};

template <bool buffered, class T, class R>
void sgd_part(const SgdNumbers& a, const SgdArrays<T, R>& x, int64_t begin, int64_t end) {
  const Lanes<T> d;
  const auto set = [&](double value) { return hn::Set(d, static_cast<T>(value)); };
  const auto scale = set(a.scale);
  const auto l2 = set(a.l2);
  const auto keep = set(a.keep);
  const auto rate = set(a.rate);
  const auto hold = set(a.hold);
  const auto take = set(a.take);
  // Direction = from_gradient·d + from_buffer·b covers the plain and the Nesterov form.
  const auto from_gradient = set(a.nesterov ? 1 : 0);
  const auto from_buffer = set(a.nesterov ? a.momentum : 1);
  each(d, end - begin, [&](int64_t offset, int64_t n) {
    const int64_t i = begin + offset;
    const auto p = load_some(d, x.p + i, n);
    const auto g = hn::MulAdd(l2, p, hn::Mul(scale, load_some(d, x.g + i, n)));
    auto direction = g;
    if constexpr (buffered) {
      const auto b = hn::MulAdd(hold, load_some(d, x.b + i, n), hn::Mul(take, g));
      store_some(d, b, x.b + i, n);
      direction = hn::MulAdd(from_gradient, g, hn::Mul(from_buffer, b));
    }
    const auto moved = hn::NegMulAdd(rate, direction, hn::Mul(keep, p));
    store_some(d, moved, x.p + i, n);
    if constexpr (!std::is_same_v<T, R>) {
      store_some(d, moved, x.rounded + i, n);
    }
  });
}

// Calls f with values of the types of p and of its rounded copy (p's own when there is none).
template <class F>
void with_types(const View& p, const View& rounded, F&& f) {
  const auto inner = [&]<class T>() {
    if (rounded.data == nullptr) {
      f.template operator()<T, T>();
    } else if (rounded.dtype == DType::bf16) {
      f.template operator()<T, BF16>();
    } else {
      f.template operator()<T, F16>();
    }
  };
  if (p.dtype == DType::f64) {
    f.template operator()<double, double>();  // an f64 weight is never a half type's master
  } else {
    inner.template operator()<float>();
  }
}

void adam_all(const AdamNumbers& a, const ConstView& g, const View& p, const View& m, const View& v,
              const View& most, const View& rounded) {
  with_types(p, rounded, [&]<class T, class R>() {
    const AdamArrays<T, R> x{g.as<T>(), p.as<T>(),    m.as<T>(),
                             v.as<T>(), most.as<T>(), static_cast<R*>(rounded.data)};
    parallel_for(p.elements(), grain, [&](int64_t begin, int64_t end) {
      if (x.most != nullptr) {
        adam_part<true>(a, x, begin, end);
      } else {
        adam_part<false>(a, x, begin, end);
      }
    });
  });
}

void sgd_all(const SgdNumbers& a, const ConstView& g, const View& p, const View& b,
             const View& rounded) {
  with_types(p, rounded, [&]<class T, class R>() {
    const SgdArrays<T, R> x{g.as<T>(), p.as<T>(), b.as<T>(), static_cast<R*>(rounded.data)};
    parallel_for(p.elements(), grain, [&](int64_t begin, int64_t end) {
      if (x.b != nullptr) {
        sgd_part<true>(a, x, begin, end);
      } else {
        sgd_part<false>(a, x, begin, end);
      }
    });
  });
}

// x ← f(lanes of x)
template <class F>
void in_place(const View& x, F&& f) {
  visit_float(x.dtype, "in place", [&]<class T>() {
    const Lanes<T> d;
    T* values = x.as<T>();
    parallel_for(x.elements(), grain, [&](int64_t begin, int64_t end) {
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
