#include "ingot/kernels/softmax.h"

#include "ingot/kernels/cpu/parallel.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ingot/kernels/cpu/softmax.cpp"
#include <hwy/foreach_target.h>
// clang-format off
#include <hwy/highway.h>
#include "ingot/kernels/cpu/lanes-inl.h"
#include "ingot/kernels/cpu/math-inl.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace ingot::kernels::HWY_NAMESPACE {
namespace {

template <class T>
Compute<T> row_max(const T* x, int64_t size) {
  const Lanes<T> d;
  auto most = hn::Set(d, -HUGE_VALF);
  each(d, size,
       [&](int64_t i, int64_t n) { most = hn::Max(most, load_some(d, x + i, n, -HUGE_VALF)); });
  return hn::GetLane(hn::MaxOfLanes(d, most));
}

// A NaN anywhere makes the whole row NaN: exp of math-inl.h keeps it.
// e_i = exp(x_i − most), written to y unless it is null; returns their sum.
template <class T>
Compute<T> row_exp(const T* x, Compute<T> most, T* y, int64_t size) {
  const Lanes<T> d;
  const auto shift = hn::Set(d, most);
  auto total = hn::Zero(d);
  each(d, size, [&](int64_t i, int64_t n) {
    const auto e = exp(d, hn::Sub(load_some(d, x + i, n, -HUGE_VALF), shift));
    total = hn::Add(total, e);
    if (y != nullptr) {
      store_some(d, e, y + i, n);
    }
  });
  return hn::GetLane(hn::SumOfLanes(d, total));
}

template <class T>
void softmax_row(const T* x, T* y, int64_t size) {
  const Lanes<T> d;
  const Compute<T> most = row_max(x, size);
  const auto scale = hn::Set(d, 1 / row_exp<T>(x, most, nullptr, size));
  const auto shift = hn::Set(d, most);
  each(d, size, [&](int64_t i, int64_t n) {
    const auto e = exp(d, hn::Sub(load_some(d, x + i, n), shift));
    store_some(d, hn::Mul(e, scale), y + i, n);
  });
}

template <class T>
void log_softmax_row(const T* x, T* y, int64_t size) {
  const Lanes<T> d;
  const Compute<T> most = row_max(x, size);
  const auto shift = hn::Set(d, most + std::log(row_exp<T>(x, most, nullptr, size)));
  each(d, size, [&](int64_t i, int64_t n) {
    store_some(d, hn::Sub(load_some(d, x + i, n), shift), y + i, n);
  });
}

template <class Row>
void by_row(const ConstView& x, const View& y, Row&& row) {
  visit_float(x.dtype, "softmax", [&]<class T>() {
    const int64_t size = x.size(-1);
    parallel_for(x.rows(), std::max<int64_t>(1, 4096 / std::max<int64_t>(size, 1)),
                 [&](int64_t begin, int64_t end) {
                   for (int64_t r = begin; r < end; ++r) {
                     row(x.as<T>() + r * size, y.as<T>() + r * size, size);
                   }
                 });
  });
}

void softmax_rows(const ConstView& x, const View& y) {
  by_row(x, y, []<class T>(const T* in, T* out, int64_t size) { softmax_row(in, out, size); });
}

void log_softmax_rows(const ConstView& x, const View& y) {
  by_row(x, y, []<class T>(const T* in, T* out, int64_t size) { log_softmax_row(in, out, size); });
}

}  // namespace
}  // namespace ingot::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ingot::kernels {

HWY_EXPORT(softmax_rows);
HWY_EXPORT(log_softmax_rows);

void softmax(const Cpu&, const ConstView& x, const View& y) {
  HWY_DYNAMIC_DISPATCH(softmax_rows)(x, y);
}

void log_softmax(const Cpu&, const ConstView& x, const View& y) {
  HWY_DYNAMIC_DISPATCH(log_softmax_rows)(x, y);
}

}  // namespace ingot::kernels
#endif
