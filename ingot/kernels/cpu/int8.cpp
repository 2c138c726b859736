#include "ingot/kernels/int8.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "ingot/kernels/cpu/parallel.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ingot/kernels/cpu/int8.cpp"
#include <hwy/foreach_target.h>
// clang-format off
#include <hwy/cache_control.h>
#include <hwy/highway.h>
#include "ingot/kernels/cpu/lanes-inl.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace ingot::kernels::HWY_NAMESPACE {
namespace {

constexpr int64_t side_by_side = 4;  // weight rows that are read as separate streams

// Calls body(group, begin, size) for the groups of a row.
template <class F>
HWY_INLINE void each_group(int64_t features, F&& body) {
  for (int64_t begin = 0, g = 0; begin < features; begin += int8_group, ++g) {
    body(g, begin, std::min(int8_group, features - begin));
  }
}

// An encoded matrix.
struct Codes {
  const int8_t* codes;
  const float* scales;
  int64_t features;
  const int8_t* row(int64_t n) const { return codes + n * features; }
  const float* scales_of(int64_t n) const { return scales + n * int8_groups(features); }
};

// Encodes `size` features that share a scale, which is returned.
template <class T>
float encode_group(const T* x, int64_t size, int8_t* codes) {
  const hn::ScalableTag<float> d;
  const hn::Rebind<int8_t, decltype(d)> d8;
  float most = 0;
  for (int64_t k = 0; k < size; ++k) {
    const float magnitude = std::abs(static_cast<float>(x[k]));
    most = magnitude > most || std::isnan(magnitude) ? magnitude : most;
  }
  const bool finite = std::isfinite(most);
  const auto by = hn::Set(d, finite && most > 0 ? 127 / most : 0);
  each(d, size, [&](int64_t k, int64_t n) HWY_ATTR {
    // Rounded half to even; demoting saturates, so that 127 · (1 + 2⁻²⁴) stays 127.
    const auto scaled = hn::Mul(load_some(d, x + k, n), by);
    const auto code = hn::DemoteTo(d8, hn::NearestInt(finite ? scaled : hn::Zero(d)));
    HWY_ALIGN int8_t buffer[hn::MaxLanes(d)];
    hn::StoreU(code, d8, buffer);
    std::memcpy(codes + k, buffer, static_cast<size_t>(n));
  });
  return finite ? most / 127 : HUGE_VALF - HUGE_VALF;
}

template <class T>
void encode_row(const T* w, int64_t features, int8_t* codes, float* scales) {
  each_group(features, [&](int64_t g, int64_t begin, int64_t size) {
    scales[g] = encode_group(w + begin, size, codes + begin);
  });
}

// out = scale · code
template <class T>
void decode_group(const int8_t* codes, float scale, int64_t size, T* out) {
  const Lanes<T> d;
  const auto by = hn::Set(d, static_cast<Compute<T>>(scale));
  each(d, size, [&](int64_t k, int64_t n) HWY_ATTR {
    store_some(d, hn::Mul(by, load_some(d, codes + k, n)), out + k, n);
  });
}

template <class T>
void decode_row(const Codes& w, int64_t row, T* out) {
  each_group(w.features, [&](int64_t g, int64_t begin, int64_t size) {
    decode_group(w.row(row) + begin, w.scales_of(row)[g], size, out + begin);
  });
}

// sums[m * W + w] = Σ_g scale_w[g] Σ_k∈g x_m[k] code_w[k] for W weight rows from `row` on.
template <int M, int W, class T>
void dots(const T* const* x, const Codes& weights, int64_t row, float* sums) {
  const hn::ScalableTag<float> d;
  using V = hn::VFromD<decltype(d)>;
  V totals[M * W];
  for (V& total : totals) {
    total = hn::Zero(d);
  }
  const int64_t ahead = 2 * side_by_side * weights.features;
  each_group(weights.features, [&](int64_t g, int64_t begin, int64_t size) HWY_ATTR {
    V parts[M * W];
    for (V& part : parts) {
      part = hn::Zero(d);
    }
    for (int w = 0; w < W; ++w) {
      hwy::Prefetch(weights.row(row + w) + begin + ahead);  // a group is a cache line
    }
    each(d, size, [&](int64_t k, int64_t n) HWY_ATTR {
      V left[M];
      for (int m = 0; m < M; ++m) {
        left[m] = load_some(d, x[m] + begin + k, n);
      }
      for (int w = 0; w < W; ++w) {
        const V right = load_some(d, weights.row(row + w) + begin + k, n);
        for (int m = 0; m < M; ++m) {
          parts[m * W + w] = hn::MulAdd(left[m], right, parts[m * W + w]);
        }
      }
    });
    for (int w = 0; w < W; ++w) {
      const V scale = hn::Set(d, weights.scales_of(row + w)[g]);
      for (int m = 0; m < M; ++m) {
        totals[m * W + w] = hn::MulAdd(scale, parts[m * W + w], totals[m * W + w]);
      }
    }
  });
  for (int i = 0; i < M * W; ++i) {
    sums[i] = hn::GetLane(hn::SumOfLanes(d, totals[i]));
  }
}

template <class T>
struct FewRows {
  const T* x;
  Codes weights;
  const T* bias;  // or null
  T* y;
  int64_t rows, columns;

  template <int M, int W>
  void block(int64_t m0, int64_t n) const {
    const T* from[M];
    float sums[M * W];
    for (int m = 0; m < M; ++m) {
      from[m] = x + (m0 + m) * weights.features;
    }
    dots<M, W>(from, weights, n, sums);
    for (int m = 0; m < M; ++m) {
      for (int w = 0; w < W; ++w) {
        const float added = bias == nullptr ? 0 : static_cast<float>(bias[n + w]);
        y[(m0 + m) * columns + n + w] = static_cast<T>(sums[m * W + w] + added);
      }
    }
  }

  template <int M>
  void band(int64_t m0, int64_t n, int64_t end) const {
    for (; n + side_by_side <= end; n += side_by_side) {
      block<M, side_by_side>(m0, n);
    }
    for (; n < end; ++n) {
      block<M, 1>(m0, n);
    }
  }

  // Columns [n, end): four rows at a time, the later ones with the weights in the cache.
  void run(int64_t n, int64_t end) const {
    for (int64_t m = 0; m < rows; m += 4) {
      switch (std::min<int64_t>(rows - m, 4)) {
        case 1: band<1>(m, n, end); break;
        case 2: band<2>(m, n, end); break;
        case 3: band<3>(m, n, end); break;
        default: band<4>(m, n, end);
      }
    }
  }
};

// f.operator()<T>() for the types of weights and activations.
template <class F>
void visit_weight(DType dtype, F&& f) {
  visit_float(dtype, "int8", [&]<class T>() {
    if constexpr (!std::is_same_v<T, double>) {
      f.template operator()<T>();
    }
  });
}

int64_t rows_a_chunk(int64_t features, int64_t most) {
  constexpr int64_t bytes = 64 << 10;
  return std::clamp<int64_t>(bytes / std::max<int64_t>(features, 1), 4, most) / side_by_side *
         side_by_side;
}

void EncodeAll(const ConstView& w, const View& codes, const View& scales) {
  const int64_t features = w.size(1);
  visit_weight(w.dtype, [&]<class T>() {
    parallel_for(w.size(0), rows_a_chunk(features, 1 << 16), [&](int64_t begin, int64_t end) {
      for (int64_t n = begin; n < end; ++n) {
        encode_row(w.as<T>() + n * features, features, codes.as<int8_t>() + n * features,
                   scales.as<float>() + n * int8_groups(features));
      }
    });
  });
}

void DecodeAll(const ConstView& codes, const ConstView& scales, const View& out) {
  const Codes w{codes.as<int8_t>(), scales.as<float>(), codes.size(1)};
  visit_float(out.dtype, "int8", [&]<class T>() {
    parallel_for(codes.size(0), rows_a_chunk(w.features, 1 << 16), [&](int64_t begin, int64_t end) {
      for (int64_t n = begin; n < end; ++n) {
        decode_row(w, n, out.as<T>() + n * w.features);
      }
    });
  });
}

void EncodeRowsAll(const ConstView& x, const View& codes, const View& scales) {
  const int64_t features = x.size(1);
  visit_weight(x.dtype, [&]<class T>() {
    parallel_for(x.size(0), rows_a_chunk(features, 1 << 16), [&](int64_t begin, int64_t end) {
      for (int64_t n = begin; n < end; ++n) {
        scales.as<float>()[n] =
            encode_group(x.as<T>() + n * features, features, codes.as<int8_t>() + n * features);
      }
    });
  });
}

void DecodeRowsAll(const ConstView& codes, const ConstView& scales, const View& out) {
  const int64_t features = codes.size(1);
  visit_float(out.dtype, "int8", [&]<class T>() {
    parallel_for(codes.size(0), rows_a_chunk(features, 1 << 16), [&](int64_t begin, int64_t end) {
      for (int64_t n = begin; n < end; ++n) {
        decode_group(codes.as<int8_t>() + n * features, scales.as<float>()[n], features,
                     out.as<T>() + n * features);
      }
    });
  });
}

void FewRowsAll(const ConstView& x, const ConstView& codes, const ConstView& scales,
                const ConstView& bias, const View& y) {
  const Codes w{codes.as<int8_t>(), scales.as<float>(), codes.size(1)};
  visit_weight(x.dtype, [&]<class T>() {
    const FewRows<T> work{x.as<T>(), w, bias.as<T>(), y.as<T>(), x.size(0), codes.size(0)};
    const int64_t piece = rows_a_chunk(w.features, 1 << 16);
    parallel_for(work.columns, piece, [&](int64_t begin, int64_t end) {
      for (int64_t n = begin; n < end; n += piece) {
        work.run(n, std::min(n + piece, end));
      }
    });
  });
}

}  // namespace
}  // namespace ingot::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ingot::kernels {

HWY_EXPORT(EncodeAll);
HWY_EXPORT(DecodeAll);
HWY_EXPORT(EncodeRowsAll);
HWY_EXPORT(DecodeRowsAll);
HWY_EXPORT(FewRowsAll);

void int8_encode(const Cpu&, const ConstView& w, const View& codes, const View& scales) {
  HWY_DYNAMIC_DISPATCH(EncodeAll)(w, codes, scales);
}

void int8_decode(const Cpu&, const ConstView& codes, const ConstView& scales, const View& out) {
  HWY_DYNAMIC_DISPATCH(DecodeAll)(codes, scales, out);
}

void int8_encode_rows(const Cpu&, const ConstView& x, const View& codes, const View& scales) {
  HWY_DYNAMIC_DISPATCH(EncodeRowsAll)(x, codes, scales);
}

void int8_decode_rows(const Cpu&, const ConstView& codes, const ConstView& scales,
                      const View& out) {
  HWY_DYNAMIC_DISPATCH(DecodeRowsAll)(codes, scales, out);
}

void int8_few_rows(const Cpu&, const ConstView& x, const ConstView& codes, const ConstView& scales,
                   const ConstView& bias, const View& y) {
  HWY_DYNAMIC_DISPATCH(FewRowsAll)(x, codes, scales, bias, y);
}

}  // namespace ingot::kernels
#endif
