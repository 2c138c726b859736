#include "ingot/kernels/norm.h"

#include <cmath>
#include <utility>
#include <vector>

#include "ingot/kernels/cpu/parallel.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ingot/kernels/cpu/norm.cpp"
#include <hwy/foreach_target.h>
// clang-format off
#include <hwy/highway.h>
#include "ingot/kernels/cpu/lanes-inl.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace ingot::kernels::HWY_NAMESPACE {
namespace {

// s = x + residual; what is normalised is s as stored, so that forward and backward see one value.
template <class T>
void add_row(const T* x, const T* residual, T* sum, int64_t size) {
  const Lanes<T> d;
  each(d, size, [&](int64_t i, int64_t n) {
    store_some(d, hn::Add(load_some(d, x + i, n), load_some(d, residual + i, n)), sum + i, n);
  });
}

template <class T>
Compute<T> mean_of(const T* x, int64_t size) {
  const Lanes<T> d;
  auto total = hn::Zero(d);
  each(d, size, [&](int64_t i, int64_t n) { total = hn::Add(total, load_some(d, x + i, n)); });
  return hn::GetLane(hn::SumOfLanes(d, total)) / static_cast<Compute<T>>(size);
}

// mean (x − mean)²: a second pass over the row, still in the first-level cache, loses no digits
// where E x² − (E x)² would.
template <class T>
Compute<T> mean_square(const T* x, Compute<T> mean, int64_t size) {
  const Lanes<T> d;
  const auto shift = hn::Set(d, mean);
  auto total = hn::Zero(d);
  each(d, size, [&](int64_t i, int64_t n) {
    const auto v = hn::Sub(load_some(d, x + i, n, mean), shift);
    total = hn::MulAdd(v, v, total);
  });
  return hn::GetLane(hn::SumOfLanes(d, total)) / static_cast<Compute<T>>(size);
}

template <class T>
void normalize_row(const T* x, Compute<T> mean, Compute<T> rstd, const NormForward& args, T* y,
                   int64_t size) {
  const T* weight = args.weight.as<T>();
  const T* bias = args.bias.as<T>();
  const Lanes<T> d;
  const auto shift = hn::Set(d, mean);
  const auto scale = hn::Set(d, rstd);
  const auto gain_offset = hn::Set(d, static_cast<Compute<T>>(args.gain_offset));
  each(d, size, [&](int64_t i, int64_t n) {
    auto v = hn::Mul(hn::Sub(load_some(d, x + i, n), shift), scale);
    if (weight != nullptr) {
      v = hn::Mul(v, hn::Add(load_some(d, weight + i, n), gain_offset));
    }
    if (bias != nullptr) {
      v = hn::Add(v, load_some(d, bias + i, n));
    }
    store_some(d, v, y + i, n);
  });
}

template <class T, bool centered>
void forward_rows(const NormForward& args) {
  using C = Compute<T>;
  const int64_t size = args.x.size(-1);
  const int64_t grain = std::max<int64_t>(1, 4096 / std::max<int64_t>(size, 1));
  parallel_for(args.x.rows(), grain, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const T* s = args.x.as<T>() + row * size;
      if (args.residual.data != nullptr) {
        T* sum = args.sum.as<T>() + row * size;
        add_row(s, args.residual.as<T>() + row * size, sum, size);
        s = sum;
      }
      const C mean = centered ? mean_of(s, size) : C{0};
      const C rstd = 1 / std::sqrt(mean_square(s, mean, size) + static_cast<C>(args.eps));
      normalize_row(s, mean, rstd, args, args.y.as<T>() + row * size, size);
      if constexpr (centered) {
        args.mean.as<C>()[row] = mean;
      }
      args.rstd.as<C>()[row] = rstd;
    }
  });
}

// One row of the backward as pointers; dweight and dbias are a worker's running sums.
template <class T>
struct BackwardRow {
  const T *sum, *weight, *dy, *dsum;
  T* dx;
  Compute<T>*dweight, *dbias;
  Compute<T> mean, rstd, gain_offset;
  int64_t size;
};

// Adds dy n and dy to the running sums, and returns mean g and mean(g n).
template <class T>
std::pair<Compute<T>, Compute<T>> reduce_row(const BackwardRow<T>& row) {
  const Lanes<T> d;
  const auto shift = hn::Set(d, row.mean);
  const auto scale = hn::Set(d, row.rstd);
  const auto gain_offset = hn::Set(d, row.gain_offset);
  auto sum_g = hn::Zero(d);
  auto sum_gn = hn::Zero(d);
  each(d, row.size, [&](int64_t i, int64_t n) {
    const auto normed = hn::Mul(hn::Sub(load_some(d, row.sum + i, n), shift), scale);
    auto g = load_some(d, row.dy + i, n);
    if (row.dweight != nullptr) {
      const auto total = load_some(d, row.dweight + i, n);
      store_some(d, hn::MulAdd(g, normed, total), row.dweight + i, n);
    }
    if (row.dbias != nullptr) {
      store_some(d, hn::Add(load_some(d, row.dbias + i, n), g), row.dbias + i, n);
    }
    if (row.weight != nullptr) {
      g = hn::Mul(g, hn::Add(load_some(d, row.weight + i, n), gain_offset));
    }
    sum_g = hn::Add(sum_g, g);
    sum_gn = hn::MulAdd(g, normed, sum_gn);
  });
  const auto count = static_cast<Compute<T>>(row.size);
  return {hn::GetLane(hn::SumOfLanes(d, sum_g)) / count,
          hn::GetLane(hn::SumOfLanes(d, sum_gn)) / count};
}

template <class T>
void backward_row(const BackwardRow<T>& row, Compute<T> mean_g, Compute<T> mean_gn) {
  const Lanes<T> d;
  const auto shift = hn::Set(d, row.mean);
  const auto scale = hn::Set(d, row.rstd);
  const auto offset = hn::Set(d, mean_g);
  const auto slope = hn::Set(d, mean_gn);
  const auto gain_offset = hn::Set(d, row.gain_offset);
  each(d, row.size, [&](int64_t i, int64_t n) {
    const auto normed = hn::Mul(hn::Sub(load_some(d, row.sum + i, n), shift), scale);
    auto g = load_some(d, row.dy + i, n);
    if (row.weight != nullptr) {
      g = hn::Mul(g, hn::Add(load_some(d, row.weight + i, n), gain_offset));
    }
    auto dx = hn::Mul(scale, hn::NegMulAdd(normed, slope, hn::Sub(g, offset)));
    if (row.dsum != nullptr) {
      dx = hn::Add(dx, load_some(d, row.dsum + i, n));
    }
    store_some(d, dx, row.dx + i, n);
  });
}

// The workers' running sums of dweight and dbias, added up in the workers' order at the end.
template <class C>
class Partials {
 public:
  Partials(const View& dweight, const View& dbias, int64_t size)
      : dweight_(dweight),
        dbias_(dbias),
        size_(size),
        stride_((size + 15) / 16 * 16),
        sums_(static_cast<size_t>(2 * stride_ * workers())) {}

  C* dweight(int64_t worker) { return at(dweight_, 2 * worker); }
  C* dbias(int64_t worker) { return at(dbias_, 2 * worker + 1); }

  void finish() {
    write(dweight_, 0);
    write(dbias_, 1);
  }

 private:
  C* at(const View& wanted, int64_t slot) {
    return wanted.data == nullptr ? nullptr : sums_.data() + slot * stride_;
  }
  void write(const View& target, int64_t first) {
    for (int64_t i = 0; target.data != nullptr && i < size_; ++i) {
      C total = 0;
      for (int64_t worker = 0; worker < workers(); ++worker) {
        total += sums_[static_cast<size_t>((2 * worker + first) * stride_ + i)];
      }
      target.as<C>()[i] = total;
    }
  }

  View dweight_, dbias_;
  int64_t size_, stride_;
  std::vector<C> sums_;
};

template <class T, bool centered>
void backward_rows(const NormBackward& args) {
  using C = Compute<T>;
  const int64_t size = args.sum.size(-1);
  const int64_t grain = std::max<int64_t>(1, 4096 / std::max<int64_t>(size, 1));
  Partials<C> partials(args.dweight, args.dbias, size);
  const auto at = [&](const ConstView& view, int64_t row) {
    return view.data == nullptr ? nullptr : view.as<T>() + row * size;
  };
  parallel_parts(args.sum.rows(), grain, [&](int64_t begin, int64_t end, int64_t worker) {
    BackwardRow<T> row{};
    row.weight = args.weight.as<T>();
    row.dweight = partials.dweight(worker);
    row.dbias = partials.dbias(worker);
    row.gain_offset = static_cast<C>(args.gain_offset);
    row.size = size;
    for (int64_t r = begin; r < end; ++r) {
      row.sum = at(args.sum, r);
      row.dy = at(args.dy, r);
      row.dsum = at(args.dsum, r);
      row.dx = args.dx.as<T>() + r * size;
      row.mean = centered ? args.mean.as<C>()[r] : C{0};
      row.rstd = args.rstd.as<C>()[r];
      const auto [mean_g, mean_gn] = reduce_row(row);
      backward_row(row, centered ? mean_g : C{0}, mean_gn);
    }
  });
  partials.finish();
}

void layer_norm_rows(const NormForward& args) {
  visit_float(args.x.dtype, "layer_norm", [&]<class T>() { forward_rows<T, true>(args); });
}
void rms_norm_rows(const NormForward& args) {
  visit_float(args.x.dtype, "rms_norm", [&]<class T>() { forward_rows<T, false>(args); });
}
void layer_norm_backward_rows(const NormBackward& args) {
  visit_float(args.sum.dtype, "layer_norm", [&]<class T>() { backward_rows<T, true>(args); });
}
void rms_norm_backward_rows(const NormBackward& args) {
  visit_float(args.sum.dtype, "rms_norm", [&]<class T>() { backward_rows<T, false>(args); });
}

}  // namespace
}  // namespace ingot::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ingot::kernels {

HWY_EXPORT(layer_norm_rows);
HWY_EXPORT(rms_norm_rows);
HWY_EXPORT(layer_norm_backward_rows);
HWY_EXPORT(rms_norm_backward_rows);

void layer_norm(const Cpu&, const NormForward& args) {
  HWY_DYNAMIC_DISPATCH(layer_norm_rows)(args);
}
void rms_norm(const Cpu&, const NormForward& args) { HWY_DYNAMIC_DISPATCH(rms_norm_rows)(args); }
void layer_norm_backward(const Cpu&, const NormBackward& args) {
  HWY_DYNAMIC_DISPATCH(layer_norm_backward_rows)(args);
}
void rms_norm_backward(const Cpu&, const NormBackward& args) {
  HWY_DYNAMIC_DISPATCH(rms_norm_backward_rows)(args);
}

}  // namespace ingot::kernels
#endif
