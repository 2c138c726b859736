// What attention's tiles on matrix instructions share: products of bf16 rows, and spans of a row.
// Included once per Highway target.
#if defined(INGOT_KERNELS_CPU_ATTENTION_MATRIX_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef INGOT_KERNELS_CPU_ATTENTION_MATRIX_INL_H_
#undef INGOT_KERNELS_CPU_ATTENTION_MATRIX_INL_H_
#else
#define INGOT_KERNELS_CPU_ATTENTION_MATRIX_INL_H_
#endif

#include "ingot/kernels/cpu/attention_tile-inl.h"
#include "ingot/kernels/cpu/dispatch.h"
#include "ingot/kernels/matmul.h"

HWY_BEFORE_NAMESPACE();
namespace ingot::kernels::HWY_NAMESPACE {
namespace {

// bf16 attention on a processor with bf16 products: a tile's scores and outputs are matrix products
// (which oneDNN runs on whatever the processor has: dot-product lanes, AMX tiles), what lies
// between them is f32 on vector lanes. Queries and keys are read where they lie, never packed.

// Whether these tiles take attention of this type.
inline bool on_matrices(DType dtype) { return dtype == DType::bf16 && multiplies_bf16(); }

// Rows of one head as a matrix [rows, width], or its transpose.
inline ConstView rows_of(const HeadRows& x, int64_t rows, int64_t width) {
  return {x.data, {rows, width}, {x.stride, 1}, x.dtype};
}
inline ConstView columns_of(const HeadRows& x, int64_t rows, int64_t width) {
  return {x.data, {width, rows}, {1, x.stride}, x.dtype};
}

// `rows` × `columns` of a tile, whose rows are `stride` apart.
template <class T>
View tile_of(T* data, int64_t rows, int64_t columns, int64_t stride) {
  return {{data, {rows, columns}, {stride, 1}, dtype_of<T>}};
}
template <class T>
ConstView turned_tile_of(const T* data, int64_t rows, int64_t columns, int64_t stride) {
  return {data, {columns, rows}, {1, stride}, dtype_of<T>};
}

// Keys of a tile that its products take: the visible ones, rounded up so that oneDNN meets few
// shapes. Those beyond `keys` are padding, never read.
inline int64_t product_keys(Span keys, Span seen) {
  constexpr int64_t step = 64;
  const int64_t wanted = tiles(seen.end - keys.begin, step) * step;
  return std::min(wanted, keys.size());
}

// Calls body(n, mask) for the whole vectors that cover elements [span.begin, span.end) of a row,
// with the lanes inside the span.
template <class D, class F>
HWY_INLINE void each_masked(D d, Span span, F&& body) {
  using T = hn::TFromD<D>;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto low = hn::Set(d, static_cast<T>(span.begin));
  const auto high = hn::Set(d, static_cast<T>(span.end));
  for (int64_t n = span.begin / lanes * lanes; n < span.end; n += lanes) {
    const auto at = hn::Iota(d, static_cast<T>(n));
    body(n, hn::And(hn::Ge(at, low), hn::Lt(at, high)));
  }
}

// row[n] = 0 outside of [span.begin, span.end), whose vectors have been written already.
inline void clear_outside(BF16* row, Span span, int64_t size) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(hn::ScalableTag<float>()));
  const int64_t begin = span.empty() ? size : span.begin / lanes * lanes;
  const int64_t end = span.empty() ? size : tiles(span.end, lanes) * lanes;
  std::fill(row, row + std::min(begin, size), BF16());
  std::fill(row + std::min(end, size), row + size, BF16());
}

// Raw products of one query become scores in units of log 2: x ← factor·x, then softcap and ALiBi,
// then −∞ where documents differ.
struct ScoreRow {
  const AttentionRule& rule;
  const Visibility& visible;
  double slope;
  int64_t query;
  Span keys;

  bool bends() const { return rule.softcap > 0 || slope != 0; }

  // Returns the factor that the scores still have to be multiplied by. `bend` may be null.
  float finish(float* row, int64_t size, Span seen, bool whole, float* bend) const {
    auto factor = static_cast<float>(query_scale(rule));
    if (bends() || factor <= 0) {
      const hn::ScalableTag<float> d;
      const auto by = hn::Set(d, factor);
      each(d, size,
           [&](int64_t n, int64_t) { hn::StoreU(hn::Mul(hn::LoadU(d, row + n), by), d, row + n); });
      bend_scores<float>(row, size, rule.softcap, slope,
                         static_cast<double>(query + rule.query_offset - keys.begin), -1, bend);
      factor = 1;
    }
    if (const int32_t* ids = visible.key_documents(); ids != nullptr && !whole) {
      hide(row, size, seen, ids + keys.begin, visible.query_documents()[query]);
    }
    return factor;
  }
};

}  // namespace
}  // namespace ingot::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
