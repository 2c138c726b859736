// One tile of attention's backward on matrix instructions. Included once per Highway target.
#if defined(INGOT_KERNELS_CPU_ATTENTION_MATRIX_BACKWARD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef INGOT_KERNELS_CPU_ATTENTION_MATRIX_BACKWARD_INL_H_
#undef INGOT_KERNELS_CPU_ATTENTION_MATRIX_BACKWARD_INL_H_
#else
#define INGOT_KERNELS_CPU_ATTENTION_MATRIX_BACKWARD_INL_H_
#endif

#include "ingot/kernels/cpu/attention_matrix-inl.h"

HWY_BEFORE_NAMESPACE();
namespace ingot::kernels::HWY_NAMESPACE {
namespace {

// One tile of keys against all queries that see it.
struct MatrixBackwardTile {
  static constexpr TileSize size{matrix_queries, matrix_keys};

  const AttentionRule& rule;
  Visibility visible;
  int64_t width;
  int64_t times;            // T
  HeadRows k{}, v{};        // from the tile's first key on
  float* dk = nullptr;      // [matrix_keys][padded C]
  float* dv = nullptr;      // [matrix_keys][padded C]
  float* scores = nullptr;  // [matrix_queries][matrix_keys]
  float* dp = nullptr;      // [matrix_queries][matrix_keys]: dy·v
  float* bend = nullptr;    // [matrix_keys]: derivative of the softcap in one row
  BF16* p = nullptr;        // [matrix_queries][matrix_keys]
  BF16* ds = nullptr;       // [matrix_queries][matrix_keys]: gradient of the scores
  Span keys{};

  static int64_t workspace(int64_t width) {
    return 2 * matrix_keys * padded(width) + 3 * matrix_queries * matrix_keys + matrix_keys;
  }
  void use(float* space) {
    dk = space;
    dv = dk + matrix_keys * padded(width);
    scores = dv + matrix_keys * padded(width);
    dp = scores + matrix_queries * matrix_keys;
    bend = dp + matrix_queries * matrix_keys;
    p = reinterpret_cast<BF16*>(bend + matrix_keys);
    ds = p + matrix_queries * matrix_keys;
  }

  // What dk must still be multiplied by: queries are read as they are.
  static double key_factor(const AttentionRule& rule) { return rule.scale; }

  void take_keys(const HeadRows& all_k, const HeadRows& all_v, Span of) {
    keys = of;
    k = all_k.from(keys.begin);
    v = all_v.from(keys.begin);
    std::fill(dk, dk + matrix_keys * padded(width), 0.0F);
    std::fill(dv, dv + matrix_keys * padded(width), 0.0F);
  }

  void add_head(const QueryHead<float>& head) {
    for (int64_t i = 0; i < times; i += matrix_queries) {
      const Span queries{i, std::min(i + matrix_queries, times)};
      const auto tile = visible.tile(queries, keys);
      if (tile != Visibility::Tile::hidden) {
        add_queries(head, queries, tile == Visibility::Tile::whole);
      }
    }
  }

  void add_queries(const QueryHead<float>& head, Span queries, bool whole) {
    const int64_t wide = padded(width);
    const int64_t rows = queries.size();
    const int64_t count = product_keys(keys, visible.keys_of(queries.begin, queries.end - 1));
    const HeadRows q = head.q.from(queries.begin);
    const HeadRows dy = head.dy.from(queries.begin);
    matmul(Cpu{}, rows_of(q, rows, width), columns_of(k, count, width),
           tile_of(scores, rows, count, matrix_keys));
    matmul(Cpu{}, rows_of(dy, rows, width), columns_of(v, count, width),
           tile_of(dp, rows, count, matrix_keys));
    for (int64_t i = 0; i < rows; ++i) {
      score_gradients(head, queries.begin + i, i, count, whole);
    }
    matmul(Cpu{}, turned_tile_of(p, rows, count, matrix_keys), rows_of(dy, rows, width),
           tile_of(dv, count, width, wide), Accumulate::yes);
    matmul(Cpu{}, turned_tile_of(ds, rows, count, matrix_keys), rows_of(q, rows, width),
           tile_of(dk, count, width, wide), Accumulate::yes);
    matmul(Cpu{}, tile_of(ds, rows, count, matrix_keys), rows_of(k, count, width),
           tile_of(head.dq + queries.begin * wide, rows, width, wide), Accumulate::yes);
  }

  // Row i of the tile: p = 2^(score − lse) and ds = p (dy·v − D), times the softcap's derivative.
  HWY_FLATTEN void score_gradients(const QueryHead<float>& head, int64_t query, int64_t i,
                                   int64_t count, bool whole) {
    const hn::ScalableTag<float> d;
    float* row = scores + i * matrix_keys;
    const float* gradient = dp + i * matrix_keys;
    const Span seen =
        whole ? Span{0, count} : within(visible.keys_of(query, query), keys.begin, count);
    const ScoreRow rule_of_row{rule, visible, head.slope, query, keys};
    const auto factor = hn::Set(d, rule_of_row.finish(row, count, seen, whole, bend));
    BF16* probabilities = p + i * matrix_keys;
    BF16* gradients = ds + i * matrix_keys;
    clear_outside(probabilities, seen, count);
    clear_outside(gradients, seen, count);
    const auto lse = hn::Set(d, head.lse[query]);
    const auto delta = hn::Set(d, head.delta[query]);
    each_masked(d, seen, [&](int64_t n, auto inside) HWY_ATTR {
      const auto x = hn::MulSub(hn::LoadU(d, row + n), factor, lse);
      const auto probability = hn::IfThenElseZero(inside, exp2_of(d, x));
      auto g = hn::Mul(probability, hn::Sub(hn::LoadU(d, gradient + n), delta));
      if (rule.softcap > 0) {
        g = hn::Mul(g, hn::LoadU(d, bend + n));
      }
      store(d, probability, probabilities + n);
      // Lanes outside hold what an earlier tile left there.
      store(d, hn::IfThenElseZero(hn::And(inside, hn::Ne(probability, hn::Zero(d))), g),
            gradients + n);
    });
  }
};

}  // namespace
}  // namespace ingot::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
