#include "ingot/kernels/magnitude.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "ingot/kernels/cpu/parallel.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ingot/kernels/cpu/magnitude.cpp"
#include <hwy/foreach_target.h>
// clang-format off
#include <hwy/highway.h>
#include "ingot/kernels/cpu/lanes-inl.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace ingot::kernels::HWY_NAMESPACE {
namespace {

constexpr int64_t grain = 16384;  // elements of a block

// Σ x² with four independent sums, so that the additions overlap.
template <class T>
double block_squares(const T* x, int64_t count) {
  const hn::ScalableTag<double> d;
  const hn::Rebind<Compute<T>, decltype(d)> narrow;
  const auto widened = [&](int64_t i) {
    const auto value = load(narrow, x + i);
    if constexpr (std::is_same_v<T, double>) {
      return value;
    } else {
      return hn::PromoteTo(d, value);
    }
  };
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  auto a = hn::Zero(d);
  auto b = a;
  auto c = a;
  auto e = a;
  int64_t i = 0;
  for (; i + 4 * lanes <= count; i += 4 * lanes) {
    const auto x0 = widened(i);
    const auto x1 = widened(i + lanes);
    const auto x2 = widened(i + 2 * lanes);
    const auto x3 = widened(i + 3 * lanes);
    a = hn::MulAdd(x0, x0, a);
    b = hn::MulAdd(x1, x1, b);
    c = hn::MulAdd(x2, x2, c);
    e = hn::MulAdd(x3, x3, e);
  }
  double total = hn::GetLane(hn::SumOfLanes(d, hn::Add(hn::Add(a, b), hn::Add(c, e))));
  for (; i < count; ++i) {
    const auto value = static_cast<double>(x[i]);
    total += value * value;
  }
  return total;
}

template <class T>
double block_largest(const T* x, int64_t count) {
  const Lanes<T> d;
  auto most = hn::Zero(d);
  auto spoilt = hn::Zero(d);  // x − x: 0, or NaN where x is NaN or infinite
  each(d, count, [&](int64_t i, int64_t n) {
    const auto value = load_some(d, x + i, n);
    spoilt = hn::Add(spoilt, hn::Sub(value, value));
    most = hn::Max(most, hn::Abs(value));
  });
  const auto largest = static_cast<double>(hn::GetLane(hn::MaxOfLanes(d, most)));
  if (!std::isnan(hn::GetLane(hn::SumOfLanes(d, spoilt)))) {
    return largest;
  }
  const bool has_nan =
      std::any_of(x, x + count, [](T value) { return std::isnan(static_cast<Compute<T>>(value)); });
  return has_nan ? static_cast<double>(NAN) : HUGE_VAL;
}

// One result per block of fixed size, in order.
template <class F>
std::vector<double> by_block(const ConstView& x, F&& f) {
  const int64_t count = x.elements();
  const int64_t blocks = (count + grain - 1) / grain;
  std::vector<double> results(static_cast<size_t>(blocks));
  visit_float(x.dtype, "gradient norm", [&]<class T>() {
    parallel_for(blocks, 1, [&](int64_t begin, int64_t end) {
      for (int64_t block = begin; block < end; ++block) {
        const int64_t start = block * grain;
        results[static_cast<size_t>(block)] = f(x.as<T>() + start, std::min(grain, count - start));
      }
    });
  });
  return results;
}

void all_squares(const ConstView& x, double& total) {
  total = 0;
  for (const double part : by_block(
           x, []<class T>(const T* from, int64_t count) { return block_squares(from, count); })) {
    total += part;
  }
}

void all_largest(const ConstView& x, double& most) {
  most = 0;
  for (const double part : by_block(
           x, []<class T>(const T* from, int64_t count) { return block_largest(from, count); })) {
    most = std::isnan(part) || part > most ? part : most;
    if (std::isnan(most)) {
      return;
    }
  }
}

}  // namespace
}  // namespace ingot::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ingot::kernels {

HWY_EXPORT(all_squares);
HWY_EXPORT(all_largest);

void sum_of_squares(const Cpu&, const ConstView& x, double& total) {
  HWY_DYNAMIC_DISPATCH(all_squares)(x, total);
}

void largest_magnitude(const Cpu&, const ConstView& x, double& most) {
  HWY_DYNAMIC_DISPATCH(all_largest)(x, most);
}

void norm(const Cpu& on, const ConstView& x, const View& y) {
  double total = 0;
  sum_of_squares(on, x, total);
  if (y.dtype == DType::f64) {
    *y.as<double>() = std::sqrt(total);
  } else {
    *y.as<float>() = static_cast<float>(std::sqrt(total));
  }
}

}  // namespace ingot::kernels
#endif
