#include "ingot/kernels/cpu/attention_decode.h"

#include <cmath>

#include "ingot/kernels/cpu/parallel.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ingot/kernels/cpu/attention_decode.cpp"
#include <hwy/foreach_target.h>
// clang-format off
#include <hwy/highway.h>
#include "ingot/kernels/cpu/attention_tile-inl.h"
// clang-format on

#ifndef INGOT_ATTENTION_DECODE_PLAN
#define INGOT_ATTENTION_DECODE_PLAN
namespace ingot::kernels {
namespace {

// The work is cut into units of one batch row, one chunk of keys and one key/value head. A unit has
// rows = T · H/K queries, and leaves for each of them Σ p v, the largest score and Σ p.
struct DecodePlan {
  static constexpr int64_t chunk = 4 * tile_keys;

  int64_t batch, times, heads, kv_heads, width, keys;

  // k: [B, S, K, C], S counting all places of a row's pages.
  DecodePlan(const Shape& q, const Shape& k)
      : batch(q[0]), times(q[1]), heads(q[2]), kv_heads(k[2]), width(q[3]), keys(k[1]) {}
  int64_t group() const { return heads / kv_heads; }
  int64_t rows() const { return times * group(); }
  int64_t chunks() const { return std::max<int64_t>(tiles(keys, chunk), 1); }
  int64_t units() const { return batch * chunks() * kv_heads; }
  int64_t unit(int64_t b, int64_t part, int64_t kv_head) const {
    return (b * chunks() + part) * kv_heads + kv_head;
  }
  // Elements of a row's partial result: the sums, then the score, then the total.
  int64_t row_size() const { return padded(width) + tile_unit; }
  int64_t query_size() const { return rows() * padded(width); }
  int64_t workspace() const { return units() * rows() * row_size() + workers() * query_size(); }
};

}  // namespace
}  // namespace ingot::kernels
#endif

HWY_BEFORE_NAMESPACE();
namespace ingot::kernels::HWY_NAMESPACE {
namespace {

// S names the type that keys and values are stored in: the queries' type, or int8_t.

// Σ_c a_c b_c
template <class C, class S>
HWY_INLINE C dot(const C* a, const S* b, int64_t width) {
  const hn::ScalableTag<C> d;
  auto sum = hn::Zero(d);
  each(d, width, [&](int64_t c, int64_t n) HWY_ATTR {
    sum = hn::MulAdd(hn::LoadU(d, a + c), load_some(d, b + c, n), sum);
  });
  return hn::GetLane(hn::SumOfLanes(d, sum));
}

// sums_c = shrink · sums_c + Σ_j p_j v_jc for N vectors of features.
template <int N, class C, class S>
HWY_FLATTEN void add_values(const C* p, int64_t keys, const S* v, int64_t stride, C shrink,
                            C* sums) {
  const hn::ScalableTag<C> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  hn::Vec<decltype(d)> sum[N];
  repeat<N>([&](auto n)
                HWY_ATTR { sum[n] = hn::Mul(hn::LoadU(d, sums + n * lanes), hn::Set(d, shrink)); });
  for (int64_t j = 0; j < keys; ++j) {
    const auto one = hn::Set(d, p[j]);
    repeat<N>([&](auto n) HWY_ATTR {
      sum[n] = hn::MulAdd(one, load(d, v + j * stride + n * lanes), sum[n]);
    });
  }
  repeat<N>([&](auto n) HWY_ATTR { hn::StoreU(sum[n], d, sums + n * lanes); });
}

// The keys (or values) of one head of a batch row: one after another, or in pages that a table
// names; of codes, with their scales.
class KeyRows {
 public:
  KeyRows(const ConstView& x, const ConstView& scales, const ConstView& pages, int64_t b,
          int64_t kv_head)
      : rows_(head_rows(x, pages.data == nullptr ? b : 0, kv_head)), heads_(x.size(2)) {
    if (pages.data != nullptr) {
      table_ = pages.as<int32_t>() + b * pages.size(1);
      page_ = x.size(1);
      page_bytes_ = x.stride(0) * size_of(x.dtype);
    }
    if (scales.data != nullptr) {
      scales_ = scales.as<float>() + kv_head;
    }
  }

  int64_t stride() const { return rows_.stride; }
  // The most keys from a tile's beginning on that lie side by side.
  int64_t together() const { return table_ == nullptr ? tile_keys : std::min(tile_keys, page_); }
  template <class T>
  const T* from(int64_t key) const {
    if (table_ == nullptr) {
      return static_cast<const T*>(rows_.from(key).data);
    }
    HeadRows page = rows_;
    page.data = static_cast<const std::byte*>(rows_.data) + table_[key / page_] * page_bytes_;
    return static_cast<const T*>(page.from(key % page_).data);
  }
  // x_j *= the scale of key `first` + j, for those of `keys`, counted from `first`, which lie side
  // by side in a page.
  void scale(int64_t first, Span keys, float* x) const {
    const float* from = scales_ + (table_[first / page_] * page_ + first % page_) * heads_;
    for (int64_t j = keys.begin; j < keys.end; ++j) {
      x[j] *= from[j * heads_];
    }
  }

 private:
  HeadRows rows_;
  int64_t heads_;
  const float* scales_ = nullptr;
  const int32_t* table_ = nullptr;
  int64_t page_ = 0;
  int64_t page_bytes_ = 0;
};

// The rule as batch row b sees it: in pages, the queries are the last of the row's keys.
AttentionRule rule_of_row(const AttentionRule& rule, int64_t b, int64_t times) {
  AttentionRule out = rule;
  if (rule.pages.data != nullptr) {
    out.query_offset = rule.key_lengths.as<int32_t>()[b] - times;
  }
  return out;
}

// One unit.
template <class C, class S>
struct DecodeUnit {
  static constexpr bool coded = std::is_same_v<S, int8_t>;

  const AttentionRule& rule;
  const DecodePlan& plan;
  Visibility visible;
  KeyRows k, v;
  int64_t first_head;  // query head of the group
  const C* queries;    // [rows][padded C], scaled; row i·group + g
  C* results;          // [rows][row_size]

  void run(Span chunk) {
    for (int64_t r = 0; r < plan.rows(); ++r) {
      C* row = results + r * plan.row_size();
      std::fill(row, row + plan.row_size(), C{0});
      row[padded(plan.width)] = -HUGE_VALF;
    }
    chunk.end = std::min(chunk.end, visible.keys());
    const int64_t step = k.together();
    for (int64_t j = chunk.begin; j < chunk.end; j += step) {
      const Span keys{j, std::min(j + step, chunk.end)};
      for (int64_t i = 0; i < plan.times; ++i) {
        const auto tile = visible.tile({i, i + 1}, keys);
        for (int64_t g = 0; g < plan.group() && tile != Visibility::Tile::hidden; ++g) {
          add_keys(i, g, keys, tile == Visibility::Tile::whole);
        }
      }
    }
  }

  void add_keys(int64_t i, int64_t g, Span keys, bool whole) {
    const hn::ScalableTag<C> d;
    const int64_t r = i * plan.group() + g;
    HWY_ALIGN C scores[tile_keys + tile_unit];
    const int64_t size = padded(keys.size());
    const Span seen = within(visible.keys_of(i, i), keys.begin, keys.size());
    const S* key = k.template from<S>(keys.begin);
    for (int64_t j = seen.begin; j < seen.end; ++j) {
      scores[j] = dot(queries + r * padded(plan.width), key + j * k.stride(), plan.width);
    }
    if constexpr (coded) {
      k.scale(keys.begin, seen, scores);
    }
    const double slope = slope_of(rule, first_head + g);
    if (rule.softcap > 0 || slope != 0) {
      bend_scores<C>(scores, keys.size(), rule.softcap, slope,
                     static_cast<double>(i + rule.query_offset - keys.begin), -1, nullptr);
    }
    const int32_t* ids = whole ? nullptr : visible.key_documents();
    hide(scores, size, seen, ids == nullptr ? nullptr : ids + keys.begin,
         ids == nullptr ? 0 : visible.query_documents()[i]);

    C* row = results + r * plan.row_size();
    C& most = row[padded(plan.width)];
    C& total = row[padded(plan.width) + 1];
    auto high = hn::Set(d, most);
    each(d, size,
         [&](int64_t n, int64_t) HWY_ATTR { high = hn::Max(high, hn::LoadU(d, scores + n)); });
    const C next = hn::GetLane(hn::MaxOfLanes(d, high));
    const C shift = next == -HUGE_VALF ? C{0} : next;
    auto sum = hn::Zero(d);
    each(d, size, [&](int64_t n, int64_t) HWY_ATTR {
      const auto p = exp2_of(d, hn::Sub(hn::LoadU(d, scores + n), hn::Set(d, shift)));
      sum = hn::Add(sum, p);
      hn::StoreU(p, d, scores + n);
    });
    const C shrink = std::exp2(most - shift);
    most = next;
    total = total * shrink + hn::GetLane(hn::SumOfLanes(d, sum));
    if constexpr (coded) {
      v.scale(keys.begin, seen, scores);
    }
    add_row_values(scores, seen, v.template from<S>(keys.begin), shrink, row);
  }

  void add_row_values(const C* p, Span seen, const S* value, C shrink, C* sums) const {
    const auto lanes = static_cast<int64_t>(hn::Lanes(hn::ScalableTag<C>()));
    const S* from = value + seen.begin * v.stride();
    int64_t c = 0;
    for (; c + 4 * lanes <= plan.width; c += 4 * lanes) {
      add_values<4>(p + seen.begin, seen.size(), from + c, v.stride(), shrink, sums + c);
    }
    for (; c + lanes <= plan.width; c += lanes) {
      add_values<1>(p + seen.begin, seen.size(), from + c, v.stride(), shrink, sums + c);
    }
    for (; c < plan.width; ++c) {
      C sum = sums[c] * shrink;
      for (int64_t j = 0; j < seen.size(); ++j) {
        sum += p[seen.begin + j] * static_cast<C>(from[j * v.stride() + c]);
      }
      sums[c] = sum;
    }
  }
};

// What all units share.
template <class T, class S>
struct DecodeWork {
  using C = Compute<T>;
  const ConstView& q;
  const ConstView& k;
  const ConstView& v;
  const AttentionRule& rule;
  const View& y;
  const View& lse;
  C* workspace;
  DecodePlan plan;

  C* results(int64_t unit) const { return workspace + unit * plan.rows() * plan.row_size(); }

  void run_unit(int64_t unit, int64_t worker) const {
    const int64_t kv_head = unit % plan.kv_heads;
    const int64_t part = unit / plan.kv_heads % plan.chunks();
    const int64_t b = unit / plan.kv_heads / plan.chunks();
    const int64_t wide = padded(plan.width);
    C* queries = results(plan.units()) + worker * plan.query_size();
    for (int64_t g = 0; g < plan.group(); ++g) {
      const HeadRows rows = head_rows(q, b, kv_head * plan.group() + g);
      for (int64_t i = 0; i < plan.times; ++i) {
        pack_rows<C>(rows.from(i), 1, plan.width, static_cast<C>(query_scale(rule)),
                     queries + (i * plan.group() + g) * wide, wide, 1);
      }
    }
    const AttentionRule own = rule_of_row(rule, b, plan.times);
    DecodeUnit<C, S>{own,
                     plan,
                     Visibility(own, b, plan.times, plan.keys),
                     KeyRows(k, rule.key_scales, rule.pages, b, kv_head),
                     KeyRows(v, rule.value_scales, rule.pages, b, kv_head),
                     kv_head * plan.group(),
                     queries,
                     results(unit)}
        .run({part * DecodePlan::chunk, (part + 1) * DecodePlan::chunk});
  }

  // Joins the chunks of query i of head h.
  void join(int64_t b, int64_t i, int64_t h) const {
    const Lanes<T> d;
    const int64_t wide = padded(plan.width);
    const auto row = [&](int64_t part) {
      return results(plan.unit(b, part, h / plan.group())) +
             (i * plan.group() + h % plan.group()) * plan.row_size();
    };
    C most = -HUGE_VALF;
    for (int64_t part = 0; part < plan.chunks(); ++part) {
      most = std::max(most, row(part)[wide]);
    }
    C total = 0;
    C* sums = row(0);
    for (int64_t part = 0; part < plan.chunks(); ++part) {
      C* from = row(part);
      const C shrink = from[wide] == -HUGE_VALF ? C{0} : std::exp2(from[wide] - most);
      total += shrink * from[wide + 1];
      const auto factor = hn::Set(d, shrink);
      each(d, wide, [&](int64_t c, int64_t) HWY_ATTR {
        const auto before = part == 0 ? hn::Zero(d) : hn::LoadU(d, sums + c);
        hn::StoreU(hn::MulAdd(factor, hn::LoadU(d, from + c), before), d, sums + c);
      });
    }
    const bool blind = total == 0;
    const auto factor = hn::Set(d, blind ? C{0} : 1 / total);
    T* to = y.as<T>() + ((b * plan.times + i) * plan.heads + h) * plan.width;
    each(d, plan.width, [&](int64_t c, int64_t n) HWY_ATTR {
      store_some(d, hn::Mul(hn::LoadU(d, sums + c), factor), to + c, n);
    });
    lse.as<C>()[(b * plan.heads + h) * plan.times + i] =
        blind ? C{HUGE_VALF} : most + std::log2(total);
  }
};

// [B, S, K, C] of keys in pages.
Shape key_shape(const Shape& q, const Shape& k, const AttentionRule& rule) {
  return rule.pages.data == nullptr ? k : Shape{q[0], rule.pages.size(1) * k[1], k[2], k[3]};
}

template <class T, class S>
void run_decoding(const DecodeWork<T, S>& work) {
  const DecodePlan& plan = work.plan;
  parallel_parts(plan.units(), 1, [&](int64_t begin, int64_t end, int64_t worker) {
    for (int64_t unit = begin; unit < end; ++unit) {
      work.run_unit(unit, worker);
    }
  });
  parallel_for(plan.batch * plan.times * plan.heads,
               std::max<int64_t>(1, 8192 / (plan.chunks() * padded(plan.width) + 1)),
               [&](int64_t begin, int64_t end) {
                 for (int64_t n = begin; n < end; ++n) {
                   work.join(n / plan.heads / plan.times, n / plan.heads % plan.times,
                             n % plan.heads);
                 }
               });
}

void decode_all(const ConstView& q, const ConstView& k, const ConstView& v,
                const AttentionRule& rule, const View& y, const View& lse, const View& workspace) {
  const DecodePlan plan(q.shape, key_shape(q.shape, k.shape, rule));
  visit_float(q.dtype, "attention", [&]<class T>() {
    auto* space = workspace.as<Compute<T>>();
    if (k.dtype != DType::i8) {
      run_decoding(DecodeWork<T, T>{q, k, v, rule, y, lse, space, plan});
    } else if constexpr (!std::is_same_v<T, double>) {
      run_decoding(DecodeWork<T, int8_t>{q, k, v, rule, y, lse, space, plan});
    }
  });
}

}  // namespace
}  // namespace ingot::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ingot::kernels {

HWY_EXPORT(decode_all);

int64_t attention_decode_workspace(const Shape& q, const Shape& k) {
  return DecodePlan(q, k).workspace();
}

void attention_decode(const ConstView& q, const ConstView& k, const ConstView& v,
                      const AttentionRule& rule, const View& y, const View& lse,
                      const View& workspace) {
  HWY_DYNAMIC_DISPATCH(decode_all)(q, k, v, rule, y, lse, workspace);
}

}  // namespace ingot::kernels
#endif
