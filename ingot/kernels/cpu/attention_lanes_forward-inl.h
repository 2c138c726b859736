// One tile of attention's forward on vector lanes: every type, every processor. Included once per
// Highway target.
#if defined(INGOT_KERNELS_CPU_ATTENTION_LANES_FORWARD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef INGOT_KERNELS_CPU_ATTENTION_LANES_FORWARD_INL_H_
#undef INGOT_KERNELS_CPU_ATTENTION_LANES_FORWARD_INL_H_
#else
#define INGOT_KERNELS_CPU_ATTENTION_LANES_FORWARD_INL_H_
#endif

#include <cmath>

#include "ingot/kernels/cpu/attention_tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace ingot::kernels::HWY_NAMESPACE {
namespace {

// One tile of queries against all keys they see. Scores are kept transposed, [key][query]: the
// lanes are queries, so that maxima and sums over keys need no step across lanes, and keys are read
// as they lie in memory.
template <class C>
struct LanesForwardTile {
  static constexpr int64_t tallest = forward_queries;

  const AttentionRule& rule;
  Visibility visible;
  HeadRows q, k, v;
  int64_t width;           // of a head
  int64_t first;           // query of the tile
  int64_t queries;         // of the tile
  double slope;            // ALiBi, in units of log 2
  C* q_columns = nullptr;  // [C][forward_queries], scaled
  C* k_rows = nullptr;     // [tile_keys][padded C]
  C* v_rows = nullptr;     // [tile_keys][padded C]
  C* scores = nullptr;     // [tile_keys][forward_queries], then probabilities
  C* sums = nullptr;       // [forward_queries][padded C]: Σ p v so far
  C* most = nullptr;       // [forward_queries]: largest score so far
  C* total = nullptr;      // [forward_queries]: Σ p so far
  C* shrink = nullptr;     // [forward_queries]: what the newest maximum scales the past by

  static int64_t workspace(int64_t width) {
    return padded(width) * (forward_queries * 2 + tile_keys * 2) + tile_keys * forward_queries +
           3 * forward_queries;
  }
  void use(C* space) {
    const int64_t wide = padded(width);
    q_columns = space;
    k_rows = q_columns + wide * forward_queries;
    v_rows = k_rows + wide * tile_keys;
    scores = v_rows + wide * tile_keys;
    sums = scores + tile_keys * forward_queries;
    most = sums + wide * forward_queries;
    total = most + forward_queries;
    shrink = total + forward_queries;
  }

  int64_t columns() const { return padded(queries); }

  void run() {
    const int64_t wide = padded(width);
    // `sums` has room for the queries as rows until the first keys come.
    pack_rows<C>(q.from(first), queries, width, static_cast<C>(query_scale(rule)), sums, wide,
                 columns());
    transpose(sums, columns(), wide, q_columns, forward_queries);
    std::fill(sums, sums + columns() * wide, C{0});
    std::fill(most, most + columns(), -HUGE_VALF);
    std::fill(total, total + columns(), C{0});
    const Span span{first, first + queries};
    const Span seen = visible.keys_of(first, first + queries - 1);
    for (int64_t j = seen.begin / tile_keys * tile_keys; j < seen.end; j += tile_keys) {
      const Span keys{j, std::min(j + tile_keys, visible.keys())};
      const auto tile = visible.tile(span, keys);
      if (tile != Visibility::Tile::hidden) {
        add_keys(keys, tile == Visibility::Tile::whole);
      }
    }
  }

  void add_keys(Span keys, bool whole) {
    const int64_t wide = padded(width);
    pack_rows<C>(k.from(keys.begin), keys.size(), width, 1, k_rows, wide,
                 tiles(keys.size(), block_rows) * block_rows);
    pack_rows<C>(v.from(keys.begin), keys.size(), width, 1, v_rows, wide, keys.size());
    for (int64_t j = 0; j < keys.size(); j += block_rows) {
      product_rows<Into::fresh>(Left<C>{k_rows + j * wide, wide, 1}, q_columns, forward_queries,
                                {0, width}, queries_of(keys, j, whole),
                                scores + j * forward_queries, forward_queries);
    }
    finish_scores(keys, whole);
    // Where no query sees these keys nothing changes: `shrink` is not read there either.
    const Span seen = whole
                          ? Span{0, columns()}
                          : within(visible.queries_of(keys.begin, keys.end - 1), first, columns());
    for (int64_t n = seen.begin / tile_unit * tile_unit; n < seen.end;) {
      n += soften(keys.size(), n);
    }
    for (int64_t i = 0; i < queries; i += block_rows) {
      const Span depth = whole ? Span{0, keys.size()}
                               : within(visible.keys_of(first + i, first + i + block_rows - 1),
                                        keys.begin, keys.size());
      if (!depth.empty()) {
        product_rows<Into::scaled_sum>(Left<C>{scores + i, 1, forward_queries}, v_rows, wide, depth,
                                       {0, wide}, sums + i * wide, wide, shrink + i);
      }
    }
  }

  // The columns that some of the keys j, …, j + block_rows − 1 of the tile need.
  Span queries_of(Span keys, int64_t j, bool whole) const {
    if (whole) {
      return {0, columns()};
    }
    const int64_t key = keys.begin + j;
    return within(visible.queries_of(key, key + block_rows - 1), first, columns());
  }

  void finish_scores(Span keys, bool whole) {
    const bool bends = rule.softcap > 0 || slope != 0;
    const int32_t* ids = visible.query_documents();
    for (int64_t j = 0; j < keys.size(); ++j) {
      const int64_t key = keys.begin + j;
      C* row = scores + j * forward_queries;
      if (bends) {
        bend_scores<C>(row, columns(), rule.softcap, slope,
                       static_cast<double>(first + rule.query_offset - key), 1, nullptr);
      }
      if (!whole) {
        hide(row, columns(), within(visible.queries_of(key, key), first, queries),
             ids == nullptr ? nullptr : ids + first,
             ids == nullptr ? 0 : visible.key_documents()[key]);
      }
    }
  }

  // Scores of the columns from n on become 2^(score − largest); returns how many columns were done.
  int64_t soften(int64_t keys, int64_t n) {
    const auto lanes = static_cast<int64_t>(hn::Lanes(hn::ScalableTag<C>()));
    if (n + 4 * lanes <= columns()) {
      soften_columns<4>(keys, n);
      return 4 * lanes;
    }
    soften_columns<1>(keys, n);
    return lanes;
  }

  template <int N>
  HWY_FLATTEN void soften_columns(int64_t keys, int64_t n) {
    const hn::ScalableTag<C> d;
    const auto lanes = static_cast<int64_t>(hn::Lanes(d));
    hn::Vec<decltype(d)> high[N];
    hn::Vec<decltype(d)> sum[N];
    repeat<N>([&](auto i) HWY_ATTR { high[i] = hn::LoadU(d, most + n + i * lanes); });
    for (int64_t j = 0; j < keys; ++j) {
      const C* row = scores + j * forward_queries + n;
      repeat<N>([&](auto i)
                    HWY_ATTR { high[i] = hn::Max(high[i], hn::LoadU(d, row + i * lanes)); });
    }
    repeat<N>([&](auto i) HWY_ATTR {
      const auto before = hn::LoadU(d, most + n + i * lanes);
      hn::StoreU(high[i], d, most + n + i * lanes);
      // A query that has seen no key yet has −∞ here: subtracting it would give NaN.
      high[i] = hn::IfThenZeroElse(hn::Eq(high[i], hn::Set(d, -HUGE_VALF)), high[i]);
      hn::StoreU(exp2_of(d, hn::Sub(before, high[i])), d, shrink + n + i * lanes);
      sum[i] = hn::Zero(d);
    });
    for (int64_t j = 0; j < keys; ++j) {
      C* row = scores + j * forward_queries + n;
      repeat<N>([&](auto i) HWY_ATTR {
        const auto p = exp2_of(d, hn::Sub(hn::LoadU(d, row + i * lanes), high[i]));
        sum[i] = hn::Add(sum[i], p);
        hn::StoreU(p, d, row + i * lanes);
      });
    }
    repeat<N>([&](auto i) HWY_ATTR {
      C* to = total + n + i * lanes;
      hn::StoreU(hn::MulAdd(hn::LoadU(d, to), hn::LoadU(d, shrink + n + i * lanes), sum[i]), d, to);
    });
  }

  // y: row of query 0 of this head, rows `stride` apart; lse: of query 0.
  template <class T>
  void write(T* y, int64_t stride, C* lse) const {
    const hn::ScalableTag<C> d;
    for (int64_t i = 0; i < queries; ++i) {
      const bool blind = total[i] == 0;
      const auto factor = hn::Set(d, blind ? C{0} : 1 / total[i]);
      const C* from = sums + i * padded(width);
      T* to = y + (first + i) * stride;
      each(d, width, [&](int64_t c, int64_t n) {
        store_some(d, hn::Mul(hn::LoadU(d, from + c), factor), to + c, n);
      });
      lse[first + i] = blind ? C{HUGE_VALF} : most[i] + std::log2(total[i]);
    }
  }
};

}  // namespace
}  // namespace ingot::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
