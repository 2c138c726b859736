// One tile of attention's forward on matrix instructions. Included once per Highway target.
#if defined(INGOT_KERNELS_CPU_ATTENTION_MATRIX_FORWARD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef INGOT_KERNELS_CPU_ATTENTION_MATRIX_FORWARD_INL_H_
#undef INGOT_KERNELS_CPU_ATTENTION_MATRIX_FORWARD_INL_H_
#else
#define INGOT_KERNELS_CPU_ATTENTION_MATRIX_FORWARD_INL_H_
#endif

#include <cmath>

#include "ingot/kernels/cpu/attention_matrix-inl.h"

HWY_BEFORE_NAMESPACE();
namespace ingot::kernels::HWY_NAMESPACE {
namespace {

// One tile of queries against all keys they see; online softmax over blocks of keys.
struct MatrixForwardTile {
  static constexpr int64_t tallest = matrix_queries;

  const AttentionRule& rule;
  Visibility visible;
  HeadRows q, k, v;
  int64_t width;            // of a head
  int64_t first;            // query of the tile
  int64_t queries;          // of the tile
  double slope;             // ALiBi, in units of log 2
  float* scores = nullptr;  // [matrix_queries][matrix_keys]
  BF16* p = nullptr;        // [matrix_queries][matrix_keys]: 2^(score − most)
  float* sums = nullptr;    // [matrix_queries][padded C]: Σ p v so far
  float* most = nullptr;    // [matrix_queries]: largest score so far
  float* total = nullptr;   // [matrix_queries]: Σ p so far
  bool started = false;     // sums hold something

  static int64_t workspace(int64_t width) {
    return matrix_queries * (matrix_keys + matrix_keys / 2 + padded(width) + 2);
  }
  void use(float* space) {
    scores = space;
    p = reinterpret_cast<BF16*>(scores + matrix_queries * matrix_keys);
    sums = scores + matrix_queries * (matrix_keys + matrix_keys / 2);
    most = sums + matrix_queries * padded(width);
    total = most + matrix_queries;
  }

  void run() {
    std::fill(most, most + queries, -HUGE_VALF);
    std::fill(total, total + queries, 0.0F);
    const Span span{first, first + queries};
    const Span seen = visible.keys_of(first, first + queries - 1);
    for (int64_t j = seen.begin / matrix_keys * matrix_keys; j < seen.end; j += matrix_keys) {
      const Span keys{j, std::min(j + matrix_keys, visible.keys())};
      const auto tile = visible.tile(span, keys);
      if (tile != Visibility::Tile::hidden) {
        add_keys(keys, product_keys(keys, seen), tile == Visibility::Tile::whole);
      }
    }
  }

  void add_keys(Span keys, int64_t size, bool whole) {
    const int64_t wide = padded(width);
    matmul(Cpu{}, rows_of(q.from(first), queries, width),
           columns_of(k.from(keys.begin), size, width),
           tile_of(scores, queries, size, matrix_keys));
    for (int64_t i = 0; i < queries; ++i) {
      const float shrink = soften(i, keys, size, whole);
      if (started && shrink != 1) {
        scale_row(sums + i * wide, wide, shrink);
      }
    }
    matmul(Cpu{}, tile_of(p, queries, size, matrix_keys), rows_of(v.from(keys.begin), size, width),
           tile_of(sums, queries, width, wide), started ? Accumulate::yes : Accumulate::no);
    started = true;
  }

  // Row i of the scores becomes probabilities; returns what the new maximum scales the past by.
  HWY_FLATTEN float soften(int64_t i, Span keys, int64_t size, bool whole) {
    const hn::ScalableTag<float> d;
    const int64_t query = first + i;
    float* row = scores + i * matrix_keys;
    BF16* out = p + i * matrix_keys;
    const Span seen =
        whole ? Span{0, size} : within(visible.keys_of(query, query), keys.begin, size);
    const ScoreRow rule_of_row{rule, visible, slope, query, keys};
    const auto factor = hn::Set(d, rule_of_row.finish(row, size, seen, whole, nullptr));
    const auto nothing = hn::Set(d, -HUGE_VALF);
    auto high = nothing;
    each_masked(d, seen, [&](int64_t n, auto inside) HWY_ATTR {
      const auto score = hn::Mul(hn::LoadU(d, row + n), factor);
      high = hn::Max(high, hn::IfThenElse(inside, score, nothing));
    });
    const float largest = std::max(most[i], hn::GetLane(hn::MaxOfLanes(d, high)));
    clear_outside(out, seen, size);
    const float shrink = largest == -HUGE_VALF ? 1 : std::exp2(most[i] - largest);
    // With nothing seen so far, −∞ − (−∞) must not become NaN: there 2^−∞ = 0 is meant.
    const auto base = hn::Set(d, largest == -HUGE_VALF ? 0 : largest);
    auto sum = hn::Zero(d);
    each_masked(d, seen, [&](int64_t n, auto inside) HWY_ATTR {
      const auto x = hn::MulSub(hn::LoadU(d, row + n), factor, base);
      const auto probability = hn::IfThenElseZero(inside, exp2_of(d, x));
      sum = hn::Add(sum, probability);
      store(d, probability, out + n);
    });
    most[i] = largest;
    total[i] = total[i] * shrink + hn::GetLane(hn::SumOfLanes(d, sum));
    return shrink;
  }

  static void scale_row(float* row, int64_t size, float by) {
    const hn::ScalableTag<float> d;
    const auto factor = hn::Set(d, by);
    each(d, size, [&](int64_t c, int64_t) {
      hn::StoreU(hn::Mul(hn::LoadU(d, row + c), factor), d, row + c);
    });
  }

  // y: row of query 0 of this head, rows `stride` apart; lse: of query 0.
  template <class T>
  void write(T* y, int64_t stride, float* lse) const {
    const hn::ScalableTag<float> d;
    for (int64_t i = 0; i < queries; ++i) {
      const bool blind = total[i] == 0;
      T* to = y + (first + i) * stride;
      lse[first + i] = blind ? HUGE_VALF : most[i] + std::log2(total[i]);
      if (blind) {
        std::fill(to, to + width, T());
        continue;
      }
      const auto factor = hn::Set(d, 1 / total[i]);
      const float* from = sums + i * padded(width);
      each(d, width, [&](int64_t c, int64_t n) {
        store_some(d, hn::Mul(hn::LoadU(d, from + c), factor), to + c, n);
      });
    }
  }
};

}  // namespace
}  // namespace ingot::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
