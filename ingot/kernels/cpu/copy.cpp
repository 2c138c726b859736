#include "ingot/kernels/copy.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <type_traits>

#include "ingot/kernels/cpu/strided.h"

namespace ingot::kernels {
namespace {

// The type in which a conversion from X to Y passes through.
template <class X, class Y>
Y cast(X value) {
  if constexpr (std::is_same_v<X, Y>) {
    return value;
  } else if constexpr (std::is_same_v<X, BF16>) {
    return cast<float, Y>(static_cast<float>(value));
  } else if constexpr (std::is_same_v<Y, bool>) {
    return value != X(0);
  } else if constexpr (std::is_same_v<Y, BF16>) {
    return BF16(static_cast<float>(value));
  } else {
    return static_cast<Y>(value);
  }
}

template <class X, class Y>
void copy_run(const X* x, int64_t x_stride, Y* y, int64_t y_stride, int64_t length) {
  if (x_stride == 1 && y_stride == 1) {
    if constexpr (std::is_same_v<X, Y>) {
      std::memcpy(y, x, static_cast<size_t>(length) * sizeof(X));
    } else {
      for (int64_t i = 0; i < length; ++i) {
        y[i] = cast<X, Y>(x[i]);
      }
    }
    return;
  }
  for (int64_t i = 0; i < length; ++i) {
    y[i * y_stride] = cast<X, Y>(x[i * x_stride]);
  }
}

// The sum of two elements of an accumulator's precision.
template <class X, class Y>
Y sum(Y y, X x) {
  if constexpr (std::is_same_v<Y, double> || std::is_integral_v<Y>) {
    return static_cast<Y>(y + cast<X, Y>(x));
  } else {
    return cast<float, Y>(cast<Y, float>(y) + cast<X, float>(x));
  }
}

}  // namespace

void copy(const Cpu&, const ConstView& x, const View& y) {
  const StridedLoop<2> loop(y.shape, {x.strides, y.strides});
  visit_any(x.dtype, [&]<class X>() {
    visit_any(y.dtype, [&]<class Y>() {
      loop.run([&](const std::array<int64_t, 2>& at, int64_t length) {
        copy_run(x.as<X>() + at[0], loop.inner_stride(0), y.as<Y>() + at[1], loop.inner_stride(1),
                 length);
      });
    });
  });
}

void accumulate(const Cpu&, const ConstView& x, const View& y) {
  const StridedLoop<2> loop(y.shape, {x.strides, y.strides});
  visit_float(x.dtype, "accumulate", [&]<class X>() {
    visit_float(y.dtype, "accumulate", [&]<class Y>() {
      loop.run([&](const std::array<int64_t, 2>& at, int64_t length) {
        const X* from = x.as<X>() + at[0];
        Y* to = y.as<Y>() + at[1];
        const int64_t sx = loop.inner_stride(0);
        const int64_t sy = loop.inner_stride(1);
        for (int64_t i = 0; i < length; ++i) {
          to[i * sy] = sum<X, Y>(to[i * sy], from[i * sx]);
        }
      });
    });
  });
}

void fill(const Cpu&, double value, const View& y) {
  const StridedLoop<1> loop(y.shape, {y.strides});
  visit_any(y.dtype, [&]<class Y>() {
    const Y element = cast<double, Y>(value);
    loop.run([&](const std::array<int64_t, 1>& at, int64_t length) {
      Y* to = y.as<Y>() + at[0];
      const int64_t stride = loop.inner_stride(0);
      for (int64_t i = 0; i < length; ++i) {
        to[i * stride] = element;
      }
    });
  });
}

namespace {

// Fills y from blocks of draws: draw_f32(b) gives elements 4b … 4b + 3 for the types computed in
// float, draw_f64(i) element i of an f64 tensor.
template <class Single, class Double>
void fill_random(const View& y, Single&& draw_f32, Double&& draw_f64) {
  visit_float(y.dtype, "random", [&]<class Y>() {
    Y* to = y.as<Y>();
    parallel_for(y.elements(), 4096, [&](int64_t begin, int64_t end) {
      if constexpr (std::is_same_v<Y, double>) {
        for (int64_t i = begin; i < end; ++i) {
          to[i] = draw_f64(static_cast<uint64_t>(i));
        }
      } else {
        for (int64_t i = begin; i < end;
             i += 4) {  // parts begin at multiples of 4096: whole blocks
          const std::array<float, 4> block = draw_f32(static_cast<uint64_t>(i / 4));
          for (int64_t lane = 0; lane < std::min<int64_t>(4, end - i); ++lane) {
            to[i + lane] = cast<float, Y>(block[static_cast<size_t>(lane)]);
          }
        }
      }
    });
  });
}

// start + width · block
std::array<float, 4> scaled(const std::array<float, 4>& block, float start, float width) {
  return {start + width * block[0], start + width * block[1], start + width * block[2],
          start + width * block[3]};
}

}  // namespace

void fill_uniform(const Cpu&, double low, double high, const RandomKey& key, const View& y) {
  const Philox random(key);
  const auto first = static_cast<float>(low);
  const auto width = static_cast<float>(high - low);
  fill_random(
      y, [&](uint64_t b) { return scaled(random.uniform4(b), first, width); },
      [&](uint64_t i) { return low + (high - low) * random.uniform_f64(i); });
}

void fill_normal(const Cpu&, double mean, double deviation, const RandomKey& key, const View& y) {
  const Philox random(key);
  const auto centre = static_cast<float>(mean);
  const auto spread = static_cast<float>(deviation);
  fill_random(
      y, [&](uint64_t b) { return scaled(random.normal4(b), centre, spread); },
      [&](uint64_t i) { return mean + deviation * random.normal_f64(i); });
}

}  // namespace ingot::kernels
