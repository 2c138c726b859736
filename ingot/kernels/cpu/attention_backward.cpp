#include "ingot/kernels/attention.h"
#include "ingot/kernels/cpu/attention_mask.h"
#include "ingot/kernels/cpu/parallel.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ingot/kernels/cpu/attention_backward.cpp"
#include <hwy/foreach_target.h>
// clang-format off
#include <hwy/highway.h>
#include "ingot/kernels/cpu/attention_lanes_backward-inl.h"
#include "ingot/kernels/cpu/attention_matrix_backward-inl.h"
// clang-format on

#ifndef INGOT_ATTENTION_BACKWARD_PLAN
#define INGOT_ATTENTION_BACKWARD_PLAN
namespace ingot::kernels {
namespace {

// The work is cut into units of one (b, key/value head) and one of `parts` sets of key tiles: set p
// has tiles p, p + parts, …. A unit owns dk and dv of its keys and a partial sum of dq.
struct BackwardPlan {
  int64_t batch, times, heads, kv_heads, width, keys;
  TileSize tile;
  int64_t tile_space;  // elements of a worker's tile
  int64_t parts;
  int64_t padded_times;  // T in whole tiles
  int64_t dq_size;       // elements of a partial dq: [H/K][padded T][padded C]

  BackwardPlan(const Shape& q, const Shape& k, TileSize size, int64_t space)
      : batch(q[0]),
        times(q[1]),
        heads(q[2]),
        kv_heads(k[2]),
        width(q[3]),
        keys(k[1]),
        tile(size),
        tile_space(space) {
    const int64_t pairs = std::max<int64_t>(batch * kv_heads, 1);
    parts = pairs >= workers() ? 1 : std::min(tiles(2 * workers(), pairs), tiles(keys, tile.keys));
    parts = std::max<int64_t>(parts, 1);
    padded_times = tiles(times, tile.queries) * tile.queries;
    dq_size = heads / kv_heads * padded_times * padded(width);
  }
  int64_t units() const { return batch * kv_heads * parts; }
  // A partial dq is summed up with its fellows after all are done; a lone one is written at once.
  int64_t dq_partials() const { return parts == 1 ? std::min(workers(), units()) : units(); }
  int64_t dq_row(int64_t g, int64_t t) const { return (g * padded_times + t) * padded(width); }
  int64_t workspace() const { return dq_partials() * dq_size + workers() * tile_space; }
};

}  // namespace
}  // namespace ingot::kernels
#endif

HWY_BEFORE_NAMESPACE();
namespace ingot::kernels::HWY_NAMESPACE {
namespace {

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
template <class T, class Tile>
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
    return workspace + plan.dq_partials() * plan.dq_size + worker * plan.tile_space;
  }

  void run_unit(int64_t unit, int64_t worker) const {
    const int64_t pair = unit / plan.parts;
    const int64_t b = pair / plan.kv_heads;
    const int64_t kv_head = pair % plan.kv_heads;
    C* dq = partial_dq(plan.parts == 1 ? worker : unit);
    std::fill(dq, dq + plan.dq_size, C{0});
    Tile tile{.rule = rule,
              .visible = Visibility(rule, b, plan.times, plan.keys),
              .width = plan.width,
              .times = plan.times};
    tile.use(tile_space(worker));
    const int64_t step = plan.tile.keys;
    for (int64_t j = unit % plan.parts * step; j < plan.keys; j += plan.parts * step) {
      const int64_t end = std::min(j + step, plan.keys);
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
  void write_keys(Tile& tile, int64_t b, int64_t kv_head, Span keys) const {
    const int64_t wide = padded(plan.width);
    for (C* sums : {tile.dk, tile.dv}) {
      std::fill(sums + tile.keys.size() * wide, sums + keys.size() * wide, C{0});
    }
    const int64_t at = ((b * plan.keys + keys.begin) * plan.kv_heads + kv_head) * plan.width;
    const int64_t stride = plan.kv_heads * plan.width;
    write_rows(tile.dk, 1, 0, keys.size(), plan.width, static_cast<C>(Tile::key_factor(rule)),
               out.dk.as<T>() + at, stride);
    write_rows(tile.dv, 1, 0, keys.size(), plan.width, C{1}, out.dv.as<T>() + at, stride);
  }

  void add_heads(Tile& tile, int64_t b, int64_t kv_head, C* dq) const {
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

template <class Tile>
BackwardPlan plan_for(const Shape& q, const Shape& k) {
  return {q, k, Tile::size, Tile::workspace(q[3])};
}

template <class T, class Tile>
void run_backward(const AttentionSaved& saved, const ConstView& dy, const AttentionRule& rule,
                  const AttentionGradients& out, const View& delta, const View& workspace) {
  using C = Compute<T>;
  row_products<T>(saved.y, dy, delta.as<C>());
  const BackwardWork<T, Tile> work{.saved = saved,
                                   .dy = dy,
                                   .rule = rule,
                                   .out = out,
                                   .delta = delta.as<C>(),
                                   .workspace = workspace.as<C>(),
                                   .plan = plan_for<Tile>(saved.q.shape, saved.k.shape)};
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
}

void backward_tiles(const AttentionSaved& saved, const ConstView& dy, const AttentionRule& rule,
                    const AttentionGradients& out, const View& delta, const View& workspace) {
  if (on_matrices(saved.q.dtype)) {
    run_backward<BF16, MatrixBackwardTile>(saved, dy, rule, out, delta, workspace);
    return;
  }
  visit_float(saved.q.dtype, "attention", [&]<class T>() {
    run_backward<T, LanesBackwardTile<Compute<T>>>(saved, dy, rule, out, delta, workspace);
  });
}

int64_t backward_workspace(const Shape& q, const Shape& k, DType dtype) {
  return on_matrices(dtype) ? plan_for<MatrixBackwardTile>(q, k).workspace()
                            : plan_for<LanesBackwardTile<float>>(q, k).workspace();
}

}  // namespace
}  // namespace ingot::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ingot::kernels {

HWY_EXPORT(backward_tiles);
HWY_EXPORT(backward_workspace);

int64_t attention_backward_workspace(const Shape& q, const Shape& k, DType dtype) {
  return HWY_DYNAMIC_DISPATCH(backward_workspace)(q, k, dtype);
}

void attention_backward(const Cpu&, const AttentionSaved& saved, const ConstView& dy,
                        const AttentionRule& rule, const AttentionGradients& out, const View& delta,
                        const View& workspace) {
  HWY_DYNAMIC_DISPATCH(backward_tiles)(saved, dy, rule, out, delta, workspace);
}

}  // namespace ingot::kernels
#endif
