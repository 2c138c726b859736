#include "ingot/kernels/cross_entropy.h"

#include <cmath>
#include <limits>

#include "ingot/kernels/cpu/parallel.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ingot/kernels/cpu/cross_entropy.cpp"
#include <hwy/foreach_target.h>
// clang-format off
#include <hwy/highway.h>
#include "ingot/kernels/cpu/lanes-inl.h"
#include "ingot/kernels/cpu/math-inl.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace ingot::kernels::HWY_NAMESPACE {
namespace {

// The rule's constants in the type that rows are computed in.
template <class C>
struct Rule {
  Rule(const CrossEntropyRule& rule, int64_t count)
      : ignore_index(rule.ignore_index),
        classes(count),
        smoothing(static_cast<C>(rule.label_smoothing)),
        z(static_cast<C>(rule.z_loss)),
        cap(static_cast<C>(rule.softcap)),
        inverse_cap(rule.softcap == 0 ? C{0} : static_cast<C>(1 / rule.softcap)) {}

  int64_t ignore_index, classes;
  C smoothing, z, cap, inverse_cap;

  C capped(C x) const { return cap == 0 ? x : cap * std::tanh(x * inverse_cap); }
  // dl/dx at l = capped(x)
  C slope(C l) const { return cap == 0 ? C{1} : 1 - l * inverse_cap * l * inverse_cap; }
};

template <class D, class C>
HWY_INLINE hn::VFromD<D> capped(D d, hn::VFromD<D> x, const Rule<C>& rule) {
  return rule.cap == 0
             ? x
             : hn::Mul(hn::Set(d, rule.cap), tanh(d, hn::Mul(x, hn::Set(d, rule.inverse_cap))));
}

// max l and Σ exp(l − max l) of a row; where smoothing asks for it, Σ (l − max l) too.
template <class C>
struct Statistics {
  C most, total, sum_below = 0;

  C log_sum() const { return most + std::log(total); }
};

// NaN if any x is NaN: the vectors' maximum and exponential would lose it.
template <class T>
Compute<T> row_max(const T* x, int64_t size) {
  const Lanes<T> d;
  constexpr Compute<T> lowest = -std::numeric_limits<Compute<T>>::infinity();
  auto most = hn::Set(d, lowest);
  auto any_nan = hn::IsNaN(hn::Zero(d));
  each(d, size, [&](int64_t i, int64_t n) {
    const auto v = load_some(d, x + i, n, lowest);
    most = hn::Max(most, v);
    any_nan = hn::Or(any_nan, hn::IsNaN(v));
  });
  return hn::AllFalse(d, any_nan) ? hn::GetLane(hn::MaxOfLanes(d, most))
                                  : std::numeric_limits<Compute<T>>::quiet_NaN();
}

// Stretches are summed in lanes and then in f64, so that long rows lose no digits.
template <class T>
Statistics<Compute<T>> row_statistics(const T* x, const Rule<Compute<T>>& rule) {
  using C = Compute<T>;
  constexpr int64_t stretch = 2048;
  constexpr C lowest = -std::numeric_limits<C>::infinity();
  const Lanes<T> d;
  const C most = rule.capped(row_max(x, rule.classes));
  if (!std::isfinite(most)) {
    return {most, std::numeric_limits<C>::quiet_NaN()};
  }
  const auto shift = hn::Set(d, most);
  double total = 0;
  double sum_below = 0;
  for (int64_t begin = 0; begin < rule.classes; begin += stretch) {
    auto sum = hn::Zero(d);
    auto below = hn::Zero(d);
    each(d, std::min(stretch, rule.classes - begin), [&](int64_t i, int64_t n) {
      const auto logit = hn::Sub(capped(d, load_some(d, x + begin + i, n, C{0}), rule), shift);
      const auto inside = hn::FirstN(d, static_cast<size_t>(n));
      sum = hn::Add(sum, hn::Exp(d, hn::IfThenElse(inside, logit, hn::Set(d, lowest))));
      if (rule.smoothing != 0) {
        below = hn::Add(below, hn::IfThenElseZero(inside, logit));
      }
    });
    total += static_cast<double>(hn::GetLane(hn::SumOfLanes(d, sum)));
    sum_below += static_cast<double>(hn::GetLane(hn::SumOfLanes(d, below)));
  }
  return {most, static_cast<C>(total), static_cast<C>(sum_below)};
}

// L − Σ t l + z L², written with differences to max l so that large logits lose no digits.
template <class C>
C loss_of(const Statistics<C>& row, C label_logit, const Rule<C>& rule) {
  const C e = rule.smoothing;
  C loss = std::log(row.total) - (1 - e) * (label_logit - row.most);
  if (e != 0) {
    loss -= e / static_cast<C>(rule.classes) * row.sum_below;
  }
  return loss + rule.z * row.log_sum() * row.log_sum();
}

template <class T>
void fill_row(T* y, Compute<T> value, int64_t size) {
  const Lanes<T> d;
  each(d, size, [&](int64_t i, int64_t n) { store_some(d, hn::Set(d, value), y + i, n); });
}

// dlogits = g (p (1 + 2 z L) − t) dl/dx of one row; dx may be x. 0 for what is smaller than every
// normal number: processors that multiply subnormal ones in microcode (Intel's) would take ten
// times as long over the two products that read it.
template <class T>
void gradient_row(const T* x, int64_t label, const Statistics<Compute<T>>& row,
                  const Rule<Compute<T>>& rule, Compute<T> g, T* dx) {
  using C = Compute<T>;
  const Lanes<T> d;
  if (!std::isfinite(row.total)) {
    fill_row(dx, std::numeric_limits<C>::quiet_NaN(), rule.classes);
    return;
  }
  const C weight = g * (1 + 2 * rule.z * row.log_sum()) / row.total;
  const C spread = g * rule.smoothing / static_cast<C>(rule.classes);
  const C at_label = rule.capped(static_cast<C>(x[label]));
  const C label_gradient =
      (std::exp(at_label - row.most) * weight - spread - g * (1 - rule.smoothing)) *
      rule.slope(at_label);
  const auto shift = hn::Set(d, row.most);
  const auto scale = hn::Set(d, weight);
  const auto offset = hn::Set(d, spread);
  const auto inverse_cap = hn::Set(d, rule.inverse_cap);
  each(d, rule.classes, [&](int64_t i, int64_t n) {
    const auto logit = capped(d, load_some(d, x + i, n), rule);
    auto dl = hn::MulSub(hn::Exp(d, hn::Sub(logit, shift)), scale, offset);
    if (rule.cap != 0) {
      const auto ratio = hn::Mul(logit, inverse_cap);
      dl = hn::Mul(dl, hn::NegMulAdd(ratio, ratio, hn::Set(d, C{1})));
    }
    const auto tiny = hn::Lt(hn::Abs(dl), hn::Set(d, std::numeric_limits<C>::min()));
    store_some(d, hn::IfThenZeroElse(tiny, dl), dx + i, n);
  });
  dx[label] = static_cast<T>(label_gradient);
}

void forward_rows(const ConstView& logits, const ConstView& labels, const CrossEntropyRule& how,
                  const View& losses, const View& statistics) {
  visit_float(logits.dtype, "cross_entropy", [&]<class T>() {
    using C = Compute<T>;
    const Rule<C> rule(how, logits.size(-1));
    parallel_for(logits.size(0), std::max<int64_t>(1, 4096 / rule.classes),
                 [&](int64_t begin, int64_t end) {
                   for (int64_t r = begin; r < end; ++r) {
                     const int64_t label = labels.as<int64_t>()[r];
                     const T* x = logits.as<T>() + r * rule.classes;
                     Statistics<C> row{0, 1};
                     C loss = 0;
                     if (label != rule.ignore_index) {
                       row = row_statistics(x, rule);
                       loss = loss_of(row, rule.capped(static_cast<C>(x[label])), rule);
                     }
                     losses.as<C>()[r] = loss;
                     if (statistics.data != nullptr) {
                       statistics.as<C>()[2 * r] = row.most;
                       statistics.as<C>()[2 * r + 1] = row.total;
                     }
                   }
                 });
  });
}

void backward_rows(const ConstView& logits, const ConstView& labels, const ConstView& statistics,
                   const CrossEntropyRule& how, const ConstView& dlosses, double scale,
                   const View& dlogits) {
  visit_float(logits.dtype, "cross_entropy", [&]<class T>() {
    using C = Compute<T>;
    const Rule<C> rule(how, logits.size(-1));
    parallel_for(logits.size(0), std::max<int64_t>(1, 4096 / rule.classes),
                 [&](int64_t begin, int64_t end) {
                   for (int64_t r = begin; r < end; ++r) {
                     const int64_t label = labels.as<int64_t>()[r];
                     T* dx = dlogits.as<T>() + r * rule.classes;
                     if (label == rule.ignore_index) {
                       fill_row(dx, C{0}, rule.classes);
                       continue;
                     }
                     const C* stored = statistics.as<C>() + 2 * r;
                     const C g = dlosses.as<C>()[r * dlosses.strides[0]] * static_cast<C>(scale);
                     gradient_row(logits.as<T>() + r * rule.classes, label, {stored[0], stored[1]},
                                  rule, g, dx);
                   }
                 });
  });
}

void in_place_rows(const View& logits, const ConstView& labels, const CrossEntropyRule& how,
                   const View& losses) {
  visit_float(logits.dtype, "cross_entropy", [&]<class T>() {
    using C = Compute<T>;
    const Rule<C> rule(how, logits.size(-1));
    parallel_for(logits.size(0), std::max<int64_t>(1, 4096 / rule.classes),
                 [&](int64_t begin, int64_t end) {
                   for (int64_t r = begin; r < end; ++r) {
                     const int64_t label = labels.as<int64_t>()[r];
                     T* x = logits.as<T>() + r * rule.classes;
                     if (label == rule.ignore_index) {
                       losses.as<C>()[r] = 0;
                       fill_row(x, C{0}, rule.classes);
                       continue;
                     }
                     const Statistics<C> row = row_statistics<T>(x, rule);
                     losses.as<C>()[r] = loss_of(row, rule.capped(static_cast<C>(x[label])), rule);
                     gradient_row<T>(x, label, row, rule, C{1}, x);
                   }
                 });
  });
}

}  // namespace
}  // namespace ingot::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ingot::kernels {

HWY_EXPORT(forward_rows);
HWY_EXPORT(backward_rows);
HWY_EXPORT(in_place_rows);

void cross_entropy(const Cpu&, const ConstView& logits, const ConstView& labels,
                   const CrossEntropyRule& rule, const View& losses, const View& statistics) {
  HWY_DYNAMIC_DISPATCH(forward_rows)(logits, labels, rule, losses, statistics);
}

void cross_entropy_backward(const Cpu&, const ConstView& logits, const ConstView& labels,
                            const ConstView& statistics, const CrossEntropyRule& rule,
                            const ConstView& dlosses, double scale, const View& dlogits) {
  HWY_DYNAMIC_DISPATCH(backward_rows)(logits, labels, statistics, rule, dlosses, scale, dlogits);
}

void cross_entropy_in_place(const Cpu&, const View& logits, const ConstView& labels,
                            const CrossEntropyRule& rule, const View& losses) {
  HWY_DYNAMIC_DISPATCH(in_place_rows)(logits, labels, rule, losses);
}

int64_t counted_labels(const Cpu&, const char* op, const ConstView& labels, int64_t classes,
                       int64_t ignore_index) {
  int64_t counted = 0;
  for (int64_t i = 0; i < labels.elements(); ++i) {
    const int64_t label = labels.as<int64_t>()[i];
    if (label != ignore_index) {
      check(label >= 0 && label < classes, ErrorKind::argument, op, ": label ", label,
            " at position ", i, " is outside [0, ", classes, ")");
      ++counted;
    }
  }
  return counted;
}

void sum_losses(const Cpu&, const ConstView& losses, double scale, const View& y) {
  visit_float(losses.dtype, "cross_entropy", [&]<class T>() {
    double total = 0;
    for (int64_t i = 0; i < losses.elements(); ++i) {
      total += static_cast<double>(losses.as<T>()[i]);
    }
    *y.as<T>() = static_cast<T>(scale * total);
  });
}

}  // namespace ingot::kernels
#endif
