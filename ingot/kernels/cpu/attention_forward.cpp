#include <algorithm>

#include "ingot/kernels/attention.h"
#include "ingot/kernels/cpu/attention_decode.h"
#include "ingot/kernels/cpu/parallel.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ingot/kernels/cpu/attention_forward.cpp"
#include <hwy/foreach_target.h>
// clang-format off
#include <hwy/highway.h>
#include "ingot/kernels/cpu/attention_lanes_forward-inl.h"
#include "ingot/kernels/cpu/attention_matrix_forward-inl.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace ingot::kernels::HWY_NAMESPACE {
namespace {

// Tiles 0, last, 1, last − 1, …: with causal masks the later ones see more keys, and so any two
// equal runs of tiles are about equal work.
int64_t balanced(int64_t index, int64_t count) {
  return index % 2 == 0 ? index / 2 : count - 1 - index / 2;
}

template <class T, class Tile>
void run_tiles(const ConstView& q, const ConstView& k, const ConstView& v,
               const AttentionRule& rule, const View& y, const View& lse, const View& workspace) {
  using C = Compute<T>;
  const int64_t heads = q.size(2);
  const int64_t group = heads / k.size(2);
  const int64_t width = q.size(3);
  const int64_t count = tiles(q.size(1), Tile::tallest);
  const int64_t space = Tile::workspace(width);
  parallel_parts(q.size(0) * heads * count, 1, [&](int64_t begin, int64_t end, int64_t worker) {
    for (int64_t unit = begin; unit < end; ++unit) {
      const int64_t h = unit / count % heads;
      const int64_t b = unit / count / heads;
      const int64_t first = balanced(unit % count, count) * Tile::tallest;
      Tile tile{.rule = rule,
                .visible = Visibility(rule, b, q.size(1), k.size(1)),
                .q = head_rows(q, b, h),
                .k = head_rows(k, b, h / group),
                .v = head_rows(v, b, h / group),
                .width = width,
                .first = first,
                .queries = std::min(Tile::tallest, q.size(1) - first),
                .slope = slope_of(rule, h)};
      tile.use(workspace.as<C>() + worker * space);
      tile.run();
      tile.write(y.as<T>() + (b * q.size(1) * heads + h) * width, heads * width,
                 lse.as<C>() + (b * heads + h) * q.size(1));
    }
  });
}

void forward_tiles(const ConstView& q, const ConstView& k, const ConstView& v,
                   const AttentionRule& rule, const View& y, const View& lse,
                   const View& workspace) {
  if (on_matrices(q.dtype)) {
    run_tiles<BF16, MatrixForwardTile>(q, k, v, rule, y, lse, workspace);
    return;
  }
  visit_float(q.dtype, "attention", [&]<class T>() {
    run_tiles<T, LanesForwardTile<Compute<T>>>(q, k, v, rule, y, lse, workspace);
  });
}

int64_t forward_workspace(int64_t width, DType dtype) {
  return workers() * (on_matrices(dtype) ? MatrixForwardTile::workspace(width)
                                         : LanesForwardTile<float>::workspace(width));
}

}  // namespace
}  // namespace ingot::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ingot::kernels {

HWY_EXPORT(forward_tiles);
HWY_EXPORT(forward_workspace);

int64_t attention_workspace(const Shape& q, const Shape& k, DType dtype) {
  if (q[1] <= decode_queries) {
    return attention_decode_workspace(q, k);
  }
  return HWY_DYNAMIC_DISPATCH(forward_workspace)(q[3], dtype);
}

void attention(const Cpu&, const ConstView& q, const ConstView& k, const ConstView& v,
               const AttentionRule& rule, const View& y, const View& lse, const View& workspace) {
  if (q.size(1) <= decode_queries) {
    attention_decode(q, k, v, rule, y, lse, workspace);
    return;
  }
  HWY_DYNAMIC_DISPATCH(forward_tiles)(q, k, v, rule, y, lse, workspace);
}

}  // namespace ingot::kernels
#endif
