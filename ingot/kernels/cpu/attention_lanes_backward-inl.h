// One tile of attention's backward on vector lanes: every type, every processor. Included once per
// Highway target.
#if defined(INGOT_KERNELS_CPU_ATTENTION_LANES_BACKWARD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef INGOT_KERNELS_CPU_ATTENTION_LANES_BACKWARD_INL_H_
#undef INGOT_KERNELS_CPU_ATTENTION_LANES_BACKWARD_INL_H_
#else
#define INGOT_KERNELS_CPU_ATTENTION_LANES_BACKWARD_INL_H_
#endif

#include "ingot/kernels/cpu/attention_tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace ingot::kernels::HWY_NAMESPACE {
namespace {

// One tile of keys against all queries that see it.
template <class C>
struct LanesBackwardTile {
  static constexpr TileSize size{tile_queries, tile_keys};

  const AttentionRule& rule;
  Visibility visible;
  int64_t width;
  int64_t times;           // T
  C* k_rows = nullptr;     // [tile_keys][padded C]
  C* k_columns = nullptr;  // [padded C][tile_keys]
  C* v_columns = nullptr;  // [padded C][tile_keys]
  C* dk = nullptr;         // [tile_keys][padded C]
  C* dv = nullptr;         // [tile_keys][padded C]
  C* q_rows = nullptr;     // [tile_queries][padded C], scaled
  C* dy_rows = nullptr;    // [tile_queries][padded C]
  C* p = nullptr;          // [tile_queries][tile_keys]: scores, then probabilities
  C* ds = nullptr;         // [tile_queries][tile_keys]: dy·v, then the gradient of the scores
  C* bend = nullptr;       // [tile_queries][tile_keys]: derivative of the softcap
  Span keys{};

  static int64_t workspace(int64_t width) {
    return padded(width) * (5 * tile_keys + 2 * tile_queries) + 3 * tile_queries * tile_keys;
  }
  void use(C* space) {
    const int64_t wide = padded(width);
    k_rows = space;
    k_columns = k_rows + wide * tile_keys;
    v_columns = k_columns + wide * tile_keys;
    dk = v_columns + wide * tile_keys;
    dv = dk + wide * tile_keys;
    q_rows = dv + wide * tile_keys;
    dy_rows = q_rows + wide * tile_queries;
    p = dy_rows + wide * tile_queries;
    ds = p + tile_queries * tile_keys;
    bend = ds + tile_queries * tile_keys;
  }

  // What dk must still be multiplied by: packed queries carry the scale of scores.
  static double key_factor(const AttentionRule& rule) { return rule.scale / query_scale(rule); }

  // Rows of `k` and `v` from key 0 on.
  void take_keys(const HeadRows& k, const HeadRows& v, Span of) {
    keys = of;
    const int64_t wide = padded(width);
    pack_rows<C>(v.from(keys.begin), keys.size(), width, 1, k_rows, wide, tile_keys);
    transpose(k_rows, tile_keys, wide, v_columns, tile_keys);
    pack_rows<C>(k.from(keys.begin), keys.size(), width, 1, k_rows, wide, tile_keys);
    transpose(k_rows, tile_keys, wide, k_columns, tile_keys);
    std::fill(dk, dk + tile_keys * wide, C{0});
    std::fill(dv, dv + tile_keys * wide, C{0});
  }

  void add_head(const QueryHead<C>& head) {
    for (int64_t i = 0; i < times; i += tile_queries) {
      const Span queries{i, std::min(i + tile_queries, times)};
      const auto tile = visible.tile(queries, keys);
      if (tile != Visibility::Tile::hidden) {
        add_queries(head, queries, tile == Visibility::Tile::whole);
      }
    }
  }

  void add_queries(const QueryHead<C>& head, Span queries, bool whole) {
    const int64_t wide = padded(width);
    const int64_t rows = tiles(queries.size(), block_rows) * block_rows;
    pack_rows<C>(head.q.from(queries.begin), queries.size(), width,
                 static_cast<C>(query_scale(rule)), q_rows, wide, rows);
    pack_rows<C>(head.dy.from(queries.begin), queries.size(), width, 1, dy_rows, wide, rows);
    for (int64_t i = 0; i < queries.size(); i += block_rows) {
      const Span seen = keys_of(queries, i, block_rows, whole);
      product_rows<Into::fresh>(Left<C>{q_rows + i * wide, wide, 1}, k_columns, tile_keys,
                                {0, width}, seen, p + i * tile_keys, tile_keys);
      product_rows<Into::fresh>(Left<C>{dy_rows + i * wide, wide, 1}, v_columns, tile_keys,
                                {0, width}, seen, ds + i * tile_keys, tile_keys);
    }
    for (int64_t i = 0; i < queries.size(); ++i) {
      score_gradients(head, queries, i, whole);
    }
    for (int64_t j = 0; j < keys.size(); j += block_rows) {
      const int64_t key = keys.begin + j;
      const Span depth = whole ? Span{0, queries.size()}
                               : within(visible.queries_of(key, key + block_rows - 1),
                                        queries.begin, queries.size());
      product_rows<Into::sum>(Left<C>{p + j, 1, tile_keys}, dy_rows, wide, depth, {0, wide},
                              dv + j * wide, wide);
      product_rows<Into::sum>(Left<C>{ds + j, 1, tile_keys}, q_rows, wide, depth, {0, wide},
                              dk + j * wide, wide);
    }
    for (int64_t i = 0; i < queries.size(); i += block_rows) {
      product_rows<Into::sum>(Left<C>{ds + i * tile_keys, tile_keys, 1}, k_rows, wide,
                              keys_of(queries, i, block_rows, whole), {0, wide},
                              head.dq + (queries.begin + i) * wide, wide);
    }
  }

  // The keys of this tile that some of `count` queries from the tile's query i on see.
  Span keys_of(Span queries, int64_t i, int64_t count, bool whole) const {
    if (whole) {
      return {0, keys.size()};
    }
    const int64_t query = queries.begin + i;
    return within(visible.keys_of(query, query + count - 1), keys.begin, keys.size());
  }

  // Row i of the tile: p = 2^(score − lse) and ds = p (dy·v − D), times the softcap's derivative.
  void score_gradients(const QueryHead<C>& head, Span queries, int64_t i, bool whole) {
    const hn::ScalableTag<C> d;
    const int64_t query = queries.begin + i;
    const Span seen = keys_of(queries, i, 1, whole);
    C* row = p + i * tile_keys;
    C* gradient = ds + i * tile_keys;
    const int64_t count = padded(keys.size());
    if (rule.softcap > 0 || head.slope != 0) {
      bend_scores<C>(row, count, rule.softcap, head.slope,
                     static_cast<double>(query + rule.query_offset - keys.begin), -1, bend);
    }
    if (!whole) {
      const int32_t* ids = visible.key_documents();
      hide(row, count, seen, ids == nullptr ? nullptr : ids + keys.begin,
           ids == nullptr ? 0 : visible.query_documents()[query]);
    }
    const auto lse = hn::Set(d, head.lse[query]);
    const auto delta = hn::Set(d, head.delta[query]);
    each(d, count, [&](int64_t n, int64_t) {
      const auto probability = exp2_of(d, hn::Sub(hn::LoadU(d, row + n), lse));
      const auto shown = hn::Ne(probability, hn::Zero(d));
      auto g = hn::Mul(probability, hn::Sub(hn::LoadU(d, gradient + n), delta));
      if (rule.softcap > 0) {
        g = hn::Mul(g, hn::LoadU(d, bend + n));
      }
      // Where nothing is seen the product was not computed: what lies there may be NaN.
      hn::StoreU(hn::IfThenElseZero(shown, g), d, gradient + n);
      hn::StoreU(probability, d, row + n);
    });
  }
};

}  // namespace
}  // namespace ingot::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
