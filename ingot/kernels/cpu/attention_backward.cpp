#include "ingot/kernels/attention.h"
#include "ingot/kernels/cpu/parallel.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ingot/kernels/cpu/attention_backward.cpp"
#include <hwy/foreach_target.h>
// clang-format off
#include <hwy/highway.h>
#include "ingot/kernels/cpu/attention_tile-inl.h"
// clang-format on

#ifndef INGOT_ATTENTION_BACKWARD_PLAN
#define INGOT_ATTENTION_BACKWARD_PLAN
namespace ingot::kernels {
namespace {

// The work is cut into units of one (b, key/value head) and one of `parts` sets of key tiles: set p
// has tiles p, p + parts, …. A unit owns dk and dv of its keys and a partial sum of dq.
struct BackwardPlan {
  int64_t batch, times, heads, kv_heads, width, keys;
  int64_t parts;
  int64_t dq_size;    // elements of a partial dq: [H/K][T padded][C padded]
  int64_t tile_size;  // elements of a worker's tiles

  BackwardPlan(const Shape& q, const Shape& k)
      : batch(q[0]), times(q[1]), heads(q[2]), kv_heads(k[2]), width(q[3]), keys(k[1]) {
    const int64_t pairs = std::max<int64_t>(batch * kv_heads, 1);
    parts = pairs >= workers() ? 1 : std::min(tiles(2 * workers(), pairs), tiles(keys, tile_keys));
    parts = std::max<int64_t>(parts, 1);
    dq_size = heads / kv_heads * tiles(times, tile_queries) * tile_queries * padded(width);
    tile_size = padded(width) * (5 * tile_keys + 2 * tile_queries) + 3 * tile_queries * tile_keys;
  }
  int64_t units() const { return batch * kv_heads * parts; }
  // A partial dq is summed up with its fellows after all are done; a lone one is written at once.
  int64_t dq_partials() const { return parts == 1 ? std::min(workers(), units()) : units(); }
  int64_t dq_row(int64_t g, int64_t t) const {
    return (g * tiles(times, tile_queries) * tile_queries + t) * padded(width);
  }
  int64_t workspace() const { return dq_partials() * dq_size + workers() * tile_size; }
};

}  // namespace
}  // namespace ingot::kernels
#endif

HWY_BEFORE_NAMESPACE();
namespace ingot::kernels::HWY_NAMESPACE {
namespace {

// One query head against the keys of one tile.
template <class C>
struct QueryHead {
  HeadRows q, dy;
  const C* lse;
  const C* delta;
  double slope;
  C* dq;  // [T padded][C padded]
};

// One tile of keys against all queries that see it.
template <class C>
struct BackwardTile {
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
    const int64_t size = padded(keys.size());
    if (rule.softcap > 0 || head.slope != 0) {
      bend_scores<C>(row, size, rule.softcap, head.slope,
                     static_cast<double>(query + rule.query_offset - keys.begin), -1, bend);
    }
    if (!whole) {
      const int32_t* ids = visible.key_documents();
      hide(row, size, seen, ids == nullptr ? nullptr : ids + keys.begin,
           ids == nullptr ? 0 : visible.query_documents()[query]);
    }
    const auto lse = hn::Set(d, head.lse[query]);
    const auto delta = hn::Set(d, head.delta[query]);
    each(d, size, [&](int64_t n, int64_t) {
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

// out[r][c] = scale · Σ_part x[part][r][c]
template <class C, class T>
void write_rows(const C* x, int64_t parts, int64_t part_stride, int64_t rows, int64_t width,
                C scale, T* out, int64_t stride) {
  const hn::ScalableTag<C> d;
  const auto factor = hn::Set(d, scale);
  for (int64_t r = 0; r < rows; ++r) {
    const C* from = x + r * padded(width);
    each(d, width, [&](int64_t c, int64_t n) {
      auto sum = hn::LoadU(d, from + c);
      for (int64_t part = 1; part < parts; ++part) {
        sum = hn::Add(sum, hn::LoadU(d, from + part * part_stride + c));
      }
      store_some(d, hn::Mul(sum, factor), out + r * stride + c, n);
    });
  }
}

// delta[b][h][t] = Σ_c dy · y
template <class T>
void row_products(const ConstView& y, const ConstView& dy, Compute<T>* delta) {
  const int64_t times = y.size(1);
  const int64_t heads = y.size(2);
  const int64_t width = y.size(3);
  parallel_for(y.size(0) * times, std::max<int64_t>(1, 4096 / std::max<int64_t>(heads * width, 1)),
               [&](int64_t begin, int64_t end) {
                 const Lanes<T> d;
                 for (int64_t row = begin; row < end; ++row) {
                   const int64_t b = row / times;
                   const int64_t t = row % times;
                   const T* a = y.as<T>() + row * heads * width;
                   const T* g = dy.as<T>() + b * dy.stride(0) + t * dy.stride(1);
                   for (int64_t h = 0; h < heads; ++h, a += width, g += width) {
                     auto sum = hn::Zero(d);
                     each(d, width, [&](int64_t c, int64_t n) {
                       sum = hn::MulAdd(load_some(d, a + c, n), load_some(d, g + c, n), sum);
                     });
                     delta[(b * heads + h) * times + t] = hn::GetLane(hn::SumOfLanes(d, sum));
                   }
                 }
               });
}

// What all units of one backward share.
template <class T>
struct BackwardWork {
  using C = Compute<T>;
  const AttentionSaved& saved;
  const ConstView& dy;
  const AttentionRule& rule;
  const AttentionGradients& out;
  const C* delta;
  C* workspace;
  BackwardPlan plan;

  C* partial_dq(int64_t index) const { return workspace + index * plan.dq_size; }
  C* tile_space(int64_t worker) const {
    return workspace + plan.dq_partials() * plan.dq_size + worker * plan.tile_size;
  }

  void run_unit(int64_t unit, int64_t worker) const {
    const int64_t pair = unit / plan.parts;
    const int64_t b = pair / plan.kv_heads;
    const int64_t kv_head = pair % plan.kv_heads;
    C* dq = partial_dq(plan.parts == 1 ? worker : unit);
    std::fill(dq, dq + plan.dq_size, C{0});
    BackwardTile<C> tile{.rule = rule,
                         .visible = Visibility(rule, b, plan.times, plan.keys),
                         .width = plan.width,
                         .times = plan.times};
    tile.use(tile_space(worker));
    for (int64_t j = unit % plan.parts * tile_keys; j < plan.keys; j += plan.parts * tile_keys) {
      const int64_t end = std::min(j + tile_keys, plan.keys);
      tile.take_keys(head_rows(saved.k, b, kv_head), head_rows(saved.v, b, kv_head),
                     {j, std::clamp(tile.visible.keys(), j, end)});
      add_heads(tile, b, kv_head, dq);
      write_keys(tile, b, kv_head, {j, end});
    }
    if (plan.parts == 1) {
      write_dq(pair, dq);
    }
  }

  // The tile's dk and dv to their places; keys that are padding get 0.
  void write_keys(BackwardTile<C>& tile, int64_t b, int64_t kv_head, Span keys) const {
    const int64_t wide = padded(plan.width);
    for (C* sums : {tile.dk, tile.dv}) {
      std::fill(sums + tile.keys.size() * wide, sums + keys.size() * wide, C{0});
    }
    const int64_t at = ((b * plan.keys + keys.begin) * plan.kv_heads + kv_head) * plan.width;
    const int64_t stride = plan.kv_heads * plan.width;
    const auto undo = static_cast<C>(rule.scale / query_scale(rule));
    write_rows(tile.dk, 1, 0, keys.size(), plan.width, undo, out.dk.as<T>() + at, stride);
    write_rows(tile.dv, 1, 0, keys.size(), plan.width, C{1}, out.dv.as<T>() + at, stride);
  }

  void add_heads(BackwardTile<C>& tile, int64_t b, int64_t kv_head, C* dq) const {
    const int64_t group = plan.heads / plan.kv_heads;
    for (int64_t g = 0; g < group; ++g) {
      const int64_t h = kv_head * group + g;
      const int64_t rows = (b * plan.heads + h) * plan.times;
      tile.add_head({.q = head_rows(saved.q, b, h),
                     .dy = head_rows(dy, b, h),
                     .lse = saved.lse.as<C>() + rows,
                     .delta = delta + rows,
                     .slope = slope_of(rule, h),
                     .dq = dq + plan.dq_row(g, 0)});
    }
  }

  void write_dq(int64_t pair, const C* dq) const {
    const int64_t b = pair / plan.kv_heads;
    const int64_t group = plan.heads / plan.kv_heads;
    for (int64_t g = 0; g < group; ++g) {
      const int64_t h = pair % plan.kv_heads * group + g;
      write_rows(dq + plan.dq_row(g, 0), plan.parts, plan.dq_size, plan.times, plan.width,
                 static_cast<C>(rule.scale),
                 out.dq.as<T>() + (b * plan.times * plan.heads + h) * plan.width,
                 plan.heads * plan.width);
    }
  }
};

void backward_tiles(const AttentionSaved& saved, const ConstView& dy, const AttentionRule& rule,
                    const AttentionGradients& out, const View& delta, const View& workspace) {
  visit_float(saved.q.dtype, "attention", [&]<class T>() {
    using C = Compute<T>;
    row_products<T>(saved.y, dy, delta.as<C>());
    const BackwardWork<T> work{.saved = saved,
                               .dy = dy,
                               .rule = rule,
                               .out = out,
                               .delta = delta.as<C>(),
                               .workspace = workspace.as<C>(),
                               .plan = BackwardPlan(saved.q.shape, saved.k.shape)};
    parallel_parts(work.plan.units(), 1, [&](int64_t begin, int64_t end, int64_t worker) {
      for (int64_t unit = begin; unit < end; ++unit) {
        work.run_unit(unit, worker);
      }
    });
    if (work.plan.parts > 1) {
      parallel_for(work.plan.batch * work.plan.kv_heads, 1, [&](int64_t begin, int64_t end) {
        for (int64_t pair = begin; pair < end; ++pair) {
          work.write_dq(pair, work.partial_dq(pair * work.plan.parts));
        }
      });
    }
  });
}

}  // namespace
}  // namespace ingot::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ingot::kernels {

HWY_EXPORT(backward_tiles);

int64_t attention_backward_workspace(const Shape& q, const Shape& k) {
  return BackwardPlan(q, k).workspace();
}

void attention_backward(const Cpu&, const AttentionSaved& saved, const ConstView& dy,
                        const AttentionRule& rule, const AttentionGradients& out, const View& delta,
                        const View& workspace) {
  HWY_DYNAMIC_DISPATCH(backward_tiles)(saved, dy, rule, out, delta, workspace);
}

}  // namespace ingot::kernels
#endif
