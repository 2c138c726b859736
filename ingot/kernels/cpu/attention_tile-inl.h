// What the tiles of attention are made of: packing rows into the compute type, a register-blocked
// product, 2^x, and masks. Included once per Highway target.
#if defined(INGOT_KERNELS_CPU_ATTENTION_TILE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef INGOT_KERNELS_CPU_ATTENTION_TILE_INL_H_
#undef INGOT_KERNELS_CPU_ATTENTION_TILE_INL_H_
#else
#define INGOT_KERNELS_CPU_ATTENTION_TILE_INL_H_
#endif

#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include <utility>

#include "ingot/kernels/cpu/attention_mask.h"
// clang-format off
#include <hwy/contrib/math/math-inl.h>
#include "ingot/kernels/cpu/lanes-inl.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace ingot::kernels::HWY_NAMESPACE {
namespace {

// C names the compute type here: float or double. Tiles are row-major with rows of a multiple of
// `tile_unit` elements, so that whole vectors of every target may be read and written.

inline constexpr double log2_e = 1.4426950408889634;
inline constexpr double ln_2 = 0.6931471805599453;

// Rows of one head: row r starts at data + r * stride (in elements).
struct HeadRows {
  const void* data;
  DType dtype;
  int64_t stride;

  HeadRows from(int64_t row) const {
    const auto* bytes = static_cast<const std::byte*>(data);
    return {bytes + row * stride * size_of(dtype), dtype, stride};
  }
};

// Head h of batch row b of x: [B, T, H, C].
inline HeadRows head_rows(const ConstView& x, int64_t b, int64_t h) {
  const auto* bytes = static_cast<const std::byte*>(x.data);
  return {bytes + (b * x.stride(0) + h * x.size(3)) * size_of(x.dtype), x.dtype, x.stride(1)};
}

// One query head against the keys of one tile, in the backward.
template <class C>
struct QueryHead {
  HeadRows q, dy;
  const C* lse;
  const C* delta;
  double slope;
  C* dq;  // [T padded][C padded]
};

// f.operator()<T>() for the element types that are computed in C.
template <class C, class F>
HWY_INLINE void visit_source(DType dtype, F&& f) {
  if constexpr (std::is_same_v<C, double>) {
    f.template operator()<double>();
  } else if (dtype == DType::bf16) {
    f.template operator()<BF16>();
  } else if (dtype == DType::f16) {
    f.template operator()<F16>();
  } else {
    f.template operator()<float>();
  }
}

// out[r][c] = scale · x[r][c] for r < rows, c < width; zero in the rest of `padded_rows` rows of
// `stride` elements.
template <class C>
void pack_rows(const HeadRows& x, int64_t rows, int64_t width, C scale, C* out, int64_t stride,
               int64_t padded_rows) {
  const hn::ScalableTag<C> d;
  const auto factor = hn::Set(d, scale);
  visit_source<C>(x.dtype, [&]<class T>() {
    const auto lanes = static_cast<int64_t>(hn::Lanes(d));
    constexpr int64_t ahead = 8;  // rows; they lie too far apart for the hardware's prefetcher
    constexpr int64_t line = 64 / sizeof(T);
    for (int64_t r = 0; r < rows; ++r) {
      const T* from = static_cast<const T*>(x.data) + r * x.stride;
      C* to = out + r * stride;
      for (int64_t c = 0; c < width && r + ahead < rows; c += line) {
        hwy::Prefetch(from + ahead * x.stride + c);
      }
      int64_t c = 0;
      for (; c + lanes <= width; c += lanes) {
        hn::StoreU(hn::Mul(load(d, from + c), factor), d, to + c);
      }
      for (; c < width; ++c) {
        to[c] = static_cast<C>(from[c]) * scale;
      }
      std::fill(to + width, to + stride, C{0});
    }
  });
  std::fill(out + rows * stride, out + padded_rows * stride, C{0});
}

// out[c][r] = x[r][c], for `rows` (a multiple of 4) rows of `width` (a multiple of 4) elements.
template <class C>
void transpose(const C* x, int64_t rows, int64_t width, C* out, int64_t out_stride) {
  if constexpr (std::is_same_v<C, float>) {
    const hn::Full128<float> d;
    const hn::Full128<double> d2;
    for (int64_t c = 0; c < width; c += 4) {
      for (int64_t r = 0; r < rows; r += 4) {
        const float* from = x + r * width + c;
        const auto row0 = hn::LoadU(d, from);
        const auto row1 = hn::LoadU(d, from + width);
        const auto row2 = hn::LoadU(d, from + 2 * width);
        const auto row3 = hn::LoadU(d, from + 3 * width);
        const auto low01 = hn::BitCast(d2, hn::InterleaveLower(d, row0, row1));
        const auto low23 = hn::BitCast(d2, hn::InterleaveLower(d, row2, row3));
        const auto high01 = hn::BitCast(d2, hn::InterleaveUpper(d, row0, row1));
        const auto high23 = hn::BitCast(d2, hn::InterleaveUpper(d, row2, row3));
        float* to = out + c * out_stride + r;
        hn::StoreU(hn::BitCast(d, hn::InterleaveLower(d2, low01, low23)), d, to);
        hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(d2, low01, low23)), d, to + out_stride);
        hn::StoreU(hn::BitCast(d, hn::InterleaveLower(d2, high01, high23)), d, to + 2 * out_stride);
        hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(d2, high01, high23)), d, to + 3 * out_stride);
      }
    }
  } else {
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t c = 0; c < width; ++c) {
        out[c * out_stride + r] = x[r * width + c];
      }
    }
  }
}

// Calls f(0), …, f(N − 1) with the index as a constant, so that arrays of vectors stay in
// registers.
template <int N, class F>
HWY_INLINE void repeat(F&& f) {
  [&]<int... I>(std::integer_sequence<int, I...>) HWY_ATTR {
    (f(std::integral_constant<int, I>{}), ...);
  }(std::make_integer_sequence<int, N>{});
}

// Rows of a register block, and its most vectors a row: with 32 registers 4 × 4 sums, 4 vectors of
// b and a broadcast; with 16 registers 4 × 3.
inline constexpr int block_rows = 4;
inline constexpr int block_vectors = HWY_TARGET <= HWY_AVX3 ? 4 : 3;

// The left operand of a product: element (m, k) is data[m * row + k * column].
template <class C>
struct Left {
  const C* data;
  int64_t row;
  int64_t column;
};

enum class Into : uint8_t { fresh, sum, scaled_sum };  // out = ab, out + ab, scale_m · out + ab

// out[m][n] (+)= Σ_{k in depth} a(m, k) b[k][n] for block_rows rows and N vectors of columns.
// Flattened: a lambda left out of line would keep the sums in memory.
template <int N, Into into, class C>
HWY_FLATTEN HWY_NOINLINE void product_block(Left<C> a, const C* HWY_RESTRICT b, int64_t b_stride,
                                            Span depth, C* HWY_RESTRICT out, int64_t out_stride,
                                            const C* scale) {
  constexpr int M = block_rows;
  const hn::ScalableTag<C> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  hn::Vec<decltype(d)> sums[M * N];
  repeat<M * N>([&](auto i) HWY_ATTR { sums[i] = hn::Zero(d); });
  const C* left = a.data + depth.begin * a.column;
  const C* right = b + depth.begin * b_stride;
  for (int64_t k = depth.begin; k < depth.end; ++k, left += a.column, right += b_stride) {
    hn::Vec<decltype(d)> row[N];
    repeat<N>([&](auto n) HWY_ATTR { row[n] = hn::LoadU(d, right + n * lanes); });
    repeat<M>([&](auto m) HWY_ATTR {
      const auto one = hn::Set(d, left[m * a.row]);
      repeat<N>([&](auto n)
                    HWY_ATTR { sums[m * N + n] = hn::MulAdd(one, row[n], sums[m * N + n]); });
    });
  }
  repeat<M>([&](auto m) HWY_ATTR {
    repeat<N>([&](auto n) HWY_ATTR {
      C* to = out + m * out_stride + n * lanes;
      auto sum = sums[m * N + n];
      if constexpr (into == Into::sum) {
        sum = hn::Add(sum, hn::LoadU(d, to));
      } else if constexpr (into == Into::scaled_sum) {
        sum = hn::MulAdd(hn::LoadU(d, to), hn::Set(d, scale[m]), sum);
      }
      hn::StoreU(sum, d, to);
    });
  });
}

// The same for all columns in `columns` (rounded outwards to whole vectors).
template <Into into, class C>
HWY_INLINE void product_rows(Left<C> a, const C* b, int64_t b_stride, Span depth, Span columns,
                             C* out, int64_t out_stride, const C* scale = nullptr) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(hn::ScalableTag<C>()));
  int64_t n = columns.begin / lanes * lanes;
  constexpr int most = block_vectors;
  for (; n + (most - 1) * lanes < columns.end; n += most * lanes) {
    product_block<most, into>(a, b + n, b_stride, depth, out + n, out_stride, scale);
  }
  const int64_t left = columns.end > n ? (columns.end - n + lanes - 1) / lanes : 0;
  if (left == 3) {
    product_block<3, into>(a, b + n, b_stride, depth, out + n, out_stride, scale);
  } else if (left == 2) {
    product_block<2, into>(a, b + n, b_stride, depth, out + n, out_stride, scale);
  } else if (left == 1) {
    product_block<1, into>(a, b + n, b_stride, depth, out + n, out_stride, scale);
  }
}

// 2^x for x ≤ 127; 0 below the smallest normal number, so for −∞ too. f32: relative error below
// 1e-7, minimax polynomial of Cephes' exp2f; exactly 1 at 0. NaN stays NaN.
template <class D>
HWY_INLINE hn::Vec<D> exp2_of(D d, hn::Vec<D> x) {
  if constexpr (std::is_same_v<hn::TFromD<D>, double>) {
    return hn::Exp(d, hn::Mul(x, hn::Set(d, ln_2)));
  } else {
    const hn::RebindToUnsigned<D> du;
    // Adding 1.5 · 2²³ + 127 rounds x to the integer n and leaves n + 127 in the low bits.
    const auto magic = hn::Set(d, 12583039.0f);
    const auto shifted = hn::Add(x, magic);
    const auto f = hn::Sub(x, hn::Sub(shifted, magic));
    auto p = hn::Set(d, 1.535336188319500e-4f);
    p = hn::MulAdd(p, f, hn::Set(d, 1.339887440266574e-3f));
    p = hn::MulAdd(p, f, hn::Set(d, 9.618437357674640e-3f));
    p = hn::MulAdd(p, f, hn::Set(d, 5.550332471162809e-2f));
    p = hn::MulAdd(p, f, hn::Set(d, 2.402264791363012e-1f));
    p = hn::MulAdd(p, f, hn::Set(d, 6.931472028550421e-1f));
    p = hn::MulAdd(p, f, hn::Set(d, 1.0f));
    const auto power = hn::BitCast(d, hn::ShiftLeft<23>(hn::BitCast(du, shifted)));
    return hn::IfThenZeroElse(hn::Lt(x, hn::Set(d, -126.0f)), hn::Mul(p, power));
  }
}

// row[n] = −∞ for n outside `seen` or of another document than `id`; ids may be null.
template <class C>
void hide(C* row, int64_t size, Span seen, const int32_t* ids, int32_t id) {
  constexpr C nothing = -HUGE_VALF;
  std::fill(row, row + std::min(seen.begin, size), nothing);
  if (ids != nullptr) {
    for (int64_t n = seen.begin; n < seen.end; ++n) {
      row[n] = ids[n] == id ? row[n] : nothing;
    }
  }
  std::fill(row + std::min(seen.end, size), row + size, nothing);
}

// The scale that packed queries carry: scores come out of the product in units of log 2, or, with a
// softcap, as the argument of tanh.
inline double query_scale(const AttentionRule& rule) {
  return rule.softcap > 0 ? rule.scale / rule.softcap : rule.scale * log2_e;
}

// The slope of head h in units of log 2; 0 without ALiBi.
inline double slope_of(const AttentionRule& rule, int64_t h) {
  return rule.alibi_slopes.data == nullptr ? 0 : rule.alibi_slopes.as<float>()[h] * log2_e;
}

// Finishes a row of raw products x_n: softcap, then −slope · distance where the distance of element
// n is first + step · n. With `derivative`, writes 1 − tanh² of each element there.
template <class C>
void bend_scores(C* row, int64_t size, double softcap, double slope, double first, double step,
                 C* derivative) {
  const hn::ScalableTag<C> d;
  const auto cap = hn::Set(d, static_cast<C>(softcap * log2_e));
  const auto per_step = hn::Set(d, static_cast<C>(-slope * step));
  each(d, size, [&](int64_t n, int64_t) {
    auto x = hn::LoadU(d, row + n);
    if (softcap > 0) {
      const auto t = hn::Tanh(d, x);
      x = hn::Mul(cap, t);
      if (derivative != nullptr) {
        hn::StoreU(hn::NegMulAdd(t, t, hn::Set(d, C{1})), d, derivative + n);
      }
    }
    if (slope != 0) {
      const auto start =
          hn::Set(d, static_cast<C>(-slope * (first + step * static_cast<double>(n))));
      x = hn::Add(x, hn::MulAdd(per_step, hn::Iota(d, 0), start));
    }
    hn::StoreU(x, d, row + n);
  });
}

}  // namespace
}  // namespace ingot::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
