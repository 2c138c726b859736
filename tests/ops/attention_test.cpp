#include "ingot/ops/attention.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "ingot/autograd/backward.h"
#include "ingot/autograd/gradcheck.h"
#include "ingot/autograd/record.h"
#include "ingot/device/allocator.h"
#include "ingot/device/flops.h"
#include "ingot/tensor/copy.h"
#include "ingot/tensor/factories.h"
#include "ingot/tensor/layout.h"
#include "tests/support/op_case.h"

namespace ingot::testing {
namespace {

// softmax(QKᵀ)V and its gradients, one (b, h, i) at a time, in f64.
class Naive {
 public:
  Naive(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionOptions& options)
      : q_(dense(q)), k_(dense(k)), v_(dense(v)), options_(options) {}

  Tensor forward() const {
    Tensor y = zeros(q_.shape(), DType::f64);
    each_query([&](int64_t b, int64_t h, int64_t i, const Row& row) {
      double* to = at(y, b, i, h);
      for (int64_t j = 0; j < keys(); ++j) {
        const double* from = at(v_, b, j, key_head(h));
        for (int64_t c = 0; c < width(); ++c) {
          to[c] += row.p[static_cast<size_t>(j)] * from[c];
        }
      }
    });
    return y;
  }

  TensorList gradients(const Tensor& dy) const {
    Tensor dq = zeros(q_.shape(), DType::f64);
    Tensor dk = zeros(k_.shape(), DType::f64);
    Tensor dv = zeros(v_.shape(), DType::f64);
    each_query([&](int64_t b, int64_t h, int64_t i, const Row& row) {
      std::vector<double> dp;
      double mean = 0;
      for (int64_t j = 0; j < keys(); ++j) {
        dp.push_back(dot(at(dy, b, i, h), at(v_, b, j, key_head(h))));
        mean += row.p[static_cast<size_t>(j)] * dp.back();
      }
      for (int64_t j = 0; j < keys(); ++j) {
        const auto n = static_cast<size_t>(j);
        const double ds = row.p[n] * (dp[n] - mean) * row.slope[n];
        add(at(dv, b, j, key_head(h)), row.p[n], at(dy, b, i, h));
        add(at(dq, b, i, h), ds, at(k_, b, j, key_head(h)));
        add(at(dk, b, j, key_head(h)), ds, at(q_, b, i, h));
      }
    });
    return {dq, dk, dv};
  }

 private:
  // Of one query: the probability of each key, and the derivative of its score with respect to q·k.
  struct Row {
    std::vector<double> p, slope;
  };

  bool visible(int64_t b, int64_t i, int64_t j) const {
    const int64_t place = i + options_.query_offset;
    const int64_t distance = place - j;
    const AttentionOptions& o = options_;
    return !(o.causal && distance < 0) && !(o.window > 0 && std::abs(distance) >= o.window) &&
           !(o.key_lengths.defined() && j >= integer(o.key_lengths, b)) &&
           !(o.documents.defined() &&
             integer(o.documents, b * keys() + j) != integer(o.documents, b * keys() + place));
  }

  double score(int64_t b, int64_t h, int64_t i, int64_t j, double& slope) const {
    const double scale =
        options_.scale != 0 ? options_.scale : 1 / std::sqrt(static_cast<double>(width()));
    double s = scale * dot(at(q_, b, i, h), at(k_, b, j, key_head(h)));
    slope = scale;
    if (options_.softcap > 0) {
      const double t = std::tanh(s / options_.softcap);
      s = options_.softcap * t;
      slope *= 1 - t * t;
    }
    if (options_.alibi_slopes.defined()) {
      s -= static_cast<double>(options_.alibi_slopes.values<float>()[static_cast<size_t>(h)]) *
           static_cast<double>(i + options_.query_offset - j);
    }
    return s;
  }

  Row row(int64_t b, int64_t h, int64_t i) const {
    Row out{std::vector<double>(static_cast<size_t>(keys()), -HUGE_VAL),
            std::vector<double>(static_cast<size_t>(keys()), 0)};
    double most = -HUGE_VAL;
    for (int64_t j = 0; j < keys(); ++j) {
      if (visible(b, i, j)) {
        const auto n = static_cast<size_t>(j);
        out.p[n] = score(b, h, i, j, out.slope[n]);
        most = std::max(most, out.p[n]);
      }
    }
    double total = 0;
    for (double& p : out.p) {
      p = most == -HUGE_VAL ? 0 : std::exp(p - most);
      total += p;
    }
    for (double& p : out.p) {
      p = total > 0 ? p / total : 0;
    }
    return out;
  }

  template <class F>
  void each_query(F&& f) const {
    for (int64_t b = 0; b < q_.size(0); ++b) {
      for (int64_t h = 0; h < q_.size(2); ++h) {
        for (int64_t i = 0; i < q_.size(1); ++i) {
          f(b, h, i, row(b, h, i));
        }
      }
    }
  }

  int64_t keys() const { return k_.size(1); }
  int64_t width() const { return q_.size(3); }
  int64_t key_head(int64_t h) const { return h / (q_.size(2) / k_.size(2)); }
  double dot(const double* a, const double* b) const {
    return std::inner_product(a, a + width(), b, 0.0);
  }
  void add(double* to, double factor, const double* from) const {
    for (int64_t c = 0; c < width(); ++c) {
      to[c] += factor * from[c];
    }
  }
  static int32_t integer(const Tensor& x, int64_t i) {
    return x.values<int32_t>()[static_cast<size_t>(i)];
  }
  // The features of one token and head.
  static const double* at(const Tensor& x, int64_t b, int64_t t, int64_t h) {
    return x.view().as<double>() + ((b * x.size(1) + t) * x.size(2) + h) * x.size(3);
  }
  static double* at(Tensor& x, int64_t b, int64_t t, int64_t h) {
    return x.fresh_view().as<double>() + ((b * x.size(1) + t) * x.size(2) + h) * x.size(3);
  }

  Tensor q_, k_, v_;
  AttentionOptions options_;
};

struct Sizes {
  int64_t B, T, S, H, K, C;
};

TensorList random_qkv(const Sizes& s, uint64_t seed) {
  return {random_tensor({s.B, s.T, s.H, s.C}, seed), random_tensor({s.B, s.S, s.K, s.C}, seed + 1),
          random_tensor({s.B, s.S, s.K, s.C}, seed + 2)};
}

TensorList gradients_of(const TensorList& qkv, const AttentionOptions& options, const Tensor& dy) {
  TensorList leaves;
  for (const Tensor& x : qkv) {
    leaves.push_back(detach(x));
    require_grad(leaves.back());
  }
  return gradients({attention(leaves[0], leaves[1], leaves[2], options)}, leaves, {dy});
}

// Largest seen: 0.0041 and 0.0084 on matrix instructions, 0.0086 for a gradient on f32 lanes alone.
constexpr double bf16_forward_bound = 0.005;
constexpr double bf16_gradient_bound = 0.01;

// bf16 against the naive loops on the same rounded inputs. Probabilities and gradients of scores
// are rounded to bf16 on their way into products where the processor multiplies bf16: 2⁻⁹ of each,
// and as much again for the results.
void expect_naive_in_bf16(const TensorList& x, const AttentionOptions& options, const Tensor& dy) {
  TensorList rounded;
  TensorList widened;
  for (const Tensor& part : x) {
    rounded.push_back(converted(part, DType::bf16));
    widened.push_back(converted(rounded.back(), DType::f64));
  }
  const Tensor rounded_dy = converted(dy, DType::bf16);
  const Naive naive(widened[0], widened[1], widened[2], options);
  EXPECT_LE(difference(attention(rounded[0], rounded[1], rounded[2], options), naive.forward()),
            bf16_forward_bound);
  const TensorList expected = naive.gradients(converted(rounded_dy, DType::f64));
  const TensorList got = gradients_of(rounded, options, rounded_dy);
  for (size_t n = 0; n < 3; ++n) {
    EXPECT_LE(difference(got[n], expected[n]), bf16_gradient_bound)
        << "bf16 gradient of input " << n;
  }
}

// Forward and gradients against the naive loops, in f64 (tight), f32 and bf16.
void expect_naive(const Sizes& s, const AttentionOptions& options, const std::string& about) {
  SCOPED_TRACE(concat(about, ": T ", s.T, ", S ", s.S, ", H ", s.H, ", K ", s.K, ", C ", s.C));
  const TensorList x = random_qkv(s, 11);
  const Tensor dy = random_tensor(x[0].shape(), 21);
  const Naive naive(x[0], x[1], x[2], options);
  const Tensor y = naive.forward();
  EXPECT_LE(difference(attention(x[0], x[1], x[2], options), y), 1e-13);
  const TensorList expected = naive.gradients(dy);
  const TensorList got = gradients_of(x, options, dy);
  TensorList narrow;
  for (const Tensor& part : x) {
    narrow.push_back(converted(part, DType::f32));
  }
  EXPECT_LE(difference(attention(narrow[0], narrow[1], narrow[2], options), y), 2e-6);
  const TensorList got_narrow = gradients_of(narrow, options, converted(dy, DType::f32));
  for (size_t n = 0; n < 3; ++n) {
    EXPECT_LE(difference(got[n], expected[n]), 1e-12) << "gradient of input " << n;
    EXPECT_LE(difference(got_narrow[n], expected[n]), 3e-6) << "f32 gradient of input " << n;
  }
  expect_naive_in_bf16(x, options, dy);
}

Tensor documents_of(int64_t B, int64_t S, int64_t length) {
  Tensor ids = empty({B, S}, DType::i32);
  for (int64_t n = 0; n < B * S; ++n) {
    ids.mutable_values<int32_t>()[static_cast<size_t>(n)] =
        static_cast<int32_t>(n / S + n % S / length);
  }
  return ids;
}

AttentionOptions bidirectional() {
  AttentionOptions options;
  options.causal = false;
  return options;
}

TEST(Attention, MatchesTheNaiveLoopsAtOddSizes) {
  for (const int64_t T : {1, 7, 33, 65, 130, 300}) {
    expect_naive({2, T, T, 2, 2, 16}, {}, "causal");
  }
  for (const int64_t T : {1, 7, 33, 65, 130}) {
    expect_naive({1, T, 130 - T + 1, 2, 1, 8}, bidirectional(), "bidirectional");
  }
}

TEST(Attention, MatchesTheNaiveLoopsForGroupedHeadsOfAnyWidth) {
  for (const int64_t C : {8, 16, 64, 80}) {
    expect_naive({2, 70, 70, 4, 4, C}, {}, "own heads");
    expect_naive({2, 70, 70, 4, 2, C}, {}, "pairs");
    expect_naive({1, 70, 70, 4, 1, C}, {}, "one key head");
  }
  expect_naive({1, 9, 9, 3, 1, 5}, {}, "odd width");
}

TEST(Attention, MatchesTheNaiveLoopsWithSlidingWindows) {
  for (const int64_t window : {1, 5, 64, 100}) {
    AttentionOptions options;
    options.window = window;
    expect_naive({1, 200, 200, 2, 1, 16}, options, "causal window");
    options.causal = false;
    expect_naive({1, 200, 200, 2, 1, 16}, options, "window on both sides");
    options.causal = true;
    expect_naive({1, 530, 530, 1, 1, 16}, options, "causal window over many tiles");
  }
}

TEST(Attention, MatchesTheNaiveLoopsInsideDocuments) {
  for (const int64_t length : {3, 50, 64, 150}) {
    AttentionOptions options;
    options.documents = documents_of(1, 300, length);
    expect_naive({1, 300, 300, 2, 1, 16}, options, "causal documents over many tiles");
    options.documents = documents_of(2, 200, length);
    expect_naive({2, 200, 200, 2, 1, 16}, options, "causal documents");
    options.causal = false;
    expect_naive({2, 200, 200, 2, 1, 16}, options, "bidirectional documents");
  }
  AttentionOptions shuffled = bidirectional();  // equal ids need not be neighbours
  shuffled.documents = empty({1, 130}, DType::i32);
  for (size_t n = 0; n < 130; ++n) {
    shuffled.documents.mutable_values<int32_t>()[n] = static_cast<int32_t>(n * 7 % 3);
  }
  expect_naive({1, 130, 130, 2, 1, 16}, shuffled, "interleaved documents");
}

TEST(Attention, MatchesTheNaiveLoopsWithPaddedKeys) {
  AttentionOptions options = bidirectional();
  options.key_lengths = tensor_of<int32_t>({130, 65, 1, 0}, {4});
  expect_naive({4, 33, 130, 2, 1, 16}, options, "bidirectional");
  options.causal = true;
  expect_naive({4, 130, 130, 2, 1, 16}, options, "causal");
}

TEST(Attention, MatchesTheNaiveLoopsWithBentScores) {
  AttentionOptions options;
  options.softcap = 1.5;
  expect_naive({2, 70, 70, 2, 1, 16}, options, "softcap");
  options.alibi_slopes = tensor_of<float>({0.5F, 0.0625F}, {2});
  expect_naive({2, 70, 70, 2, 1, 16}, options, "softcap and ALiBi");
  options.softcap = 0;
  options.scale = 0.7;
  expect_naive({2, 70, 70, 2, 1, 16}, options, "ALiBi and scale");
  options.causal = false;
  options.scale = -0.2;
  expect_naive({2, 70, 70, 2, 1, 16}, options, "bidirectional ALiBi, negative scale");
}

TEST(Attention, MatchesTheNaiveLoopsWithEverythingAtOnce) {
  AttentionOptions options;
  options.window = 40;
  options.softcap = 2;
  options.query_offset = 97;
  options.documents = documents_of(2, 130, 45);
  options.key_lengths = tensor_of<int32_t>({130, 110}, {2});
  options.alibi_slopes = tensor_of<float>({0.5F, 0.25F, 0.125F, 0.0625F}, {4});
  expect_naive({2, 33, 130, 4, 2, 16}, options, "everything");
}

TEST(Attention, MatchesTheNaiveLoopsFromAnOffset) {
  for (const int64_t T : {1, 2, 3, 4, 5, 70}) {
    AttentionOptions options;
    options.query_offset = 130 - T;
    expect_naive({2, T, 130, 4, 2, 16}, options, "after a cache");
    options.window = 20;
    expect_naive({2, T, 130, 4, 1, 16}, options, "after a cache, window");
  }
}

TEST(Attention, PassesItsCase) {
  AttentionOptions softcapped;
  softcapped.softcap = 3;
  const auto op_for = [](const std::string& name, const AttentionOptions& options) {
    OpCase op;
    op.name = name;
    op.run = [options](const TensorList& x) {
      return TensorList{attention(x[0], x[1], x[2], options)};
    };
    op.reference = [options](const TensorList& x) {
      return TensorList{Naive(x[0], x[1], x[2], options).forward()};
    };
    op.samples = {{"grouped heads", random_qkv({2, 37, 37, 4, 2, 16}, 1)},
                  {"one token", random_qkv({1, 1, 1, 1, 1, 8}, 2)},
                  {"no tokens", random_qkv({2, 0, 5, 2, 1, 8}, 3)},
                  {"no keys", random_qkv({2, 3, 0, 2, 1, 8}, 4)},
                  {"no rows", random_qkv({0, 3, 3, 2, 1, 8}, 5)}};
    return op;
  };
  OpCase causal = op_for("causal attention", {});
  const auto x = [](const Shape& shape, DType dtype = DType::f32) { return zeros(shape, dtype); };
  causal.refusals = {
      {[=] {
         attention(x({2, 3, 4}), x({2, 3, 4, 8}), x({2, 3, 4, 8}));
       },
       "attention: takes q of shape [B, T, H, C] and k, v of [B, S, K, C]: q is [2, 3, 4]"},
      {[=] {
         attention(x({2, 3, 4, 8}), x({2, 3, 4, 8}), x({2, 3, 2, 8}));
       },
       "attention: keys and values differ: k is [2, 3, 4, 8], v is [2, 3, 2, 8]"},
      {[=] {
         attention(x({2, 3, 4, 8}), x({1, 3, 4, 8}), x({1, 3, 4, 8}));
       },
       "attention: queries and keys differ in batch or head width: q is [2, 3, 4, 8]"},
      {[=] {
         attention(x({2, 3, 4, 8}), x({2, 3, 3, 8}), x({2, 3, 3, 8}));
       },
       "attention: query heads are no multiple of key heads: H is 4, K is 3"},
      {[=] {
         attention(x({2, 3, 4, 8}), x({2, 3, 4, 8}, DType::bf16), x({2, 3, 4, 8}));
       },
       "attention: takes q, k and v of one floating-point type: got f32, bf16 and f32"},
      {[=] {
         attention(x({2, 3, 4, 8}), x({2, 3, 4, 8}), x({2, 3, 4, 8}),
                   {.documents = x({2, 4}, DType::i32)});
       },
       "attention: documents does not fit: takes i32 of shape [2, 3], got i32 of [2, 4]"},
      {[=] {
         attention(x({2, 3, 4, 8}), x({2, 3, 4, 8}), x({2, 3, 4, 8}),
                   {.key_lengths = x({2}, DType::i64)});
       },
       "attention: key_lengths does not fit: takes i32 of shape [2], got i64 of [2]"},
      {[=] {
         attention(x({2, 3, 4, 8}), x({2, 3, 4, 8}), x({2, 3, 4, 8}), {.window = -1});
       },
       "attention: the window is negative: got -1"},
      {[=] {
         attention(x({2, 3, 4, 8}), x({2, 3, 4, 8}), x({2, 3, 4, 8}), {.softcap = -1});
       },
       "attention: the softcap is negative: got -1"},
      {[=] {
         attention(x({2, 3, 4, 8}), x({2, 3, 4, 8}), x({2, 3, 4, 8}), {.query_offset = -1});
       },
       "attention: the query offset is negative: got -1"},
      {[=] {
         attention(x({2, 3, 4, 8}), x({2, 3, 4, 8}), x({2, 3, 4, 8}),
                   {.query_offset = 1, .documents = x({2, 3}, DType::i32)});
       },
       "attention: queries lie beyond the keys, whose documents are given: the last query is at "
       "3"}};
  check_op(causal);
  check_op(op_for("bidirectional attention", bidirectional()));
  check_op(op_for("softcapped attention", softcapped));
}

TEST(Attention, GivesZeroAndNoGradientToQueriesThatSeeNoKey) {
  AttentionOptions options;
  options.key_lengths = tensor_of<int32_t>({0, 3}, {2});
  const TensorList x = random_qkv({2, 70, 70, 2, 1, 16}, 31);
  EXPECT_TRUE(same_bits(sliced(attention(x[0], x[1], x[2], options), 0, 0, 1),
                        zeros({1, 70, 2, 16}, DType::f64)));
  const TensorList got = gradients_of(x, options, random_tensor(x[0].shape(), 32));
  for (const Tensor& gradient : got) {
    EXPECT_EQ(
        difference(sliced(gradient, 0, 0, 1), zeros(sliced(gradient, 0, 0, 1).shape(), DType::f64)),
        0);
  }
  EXPECT_GT(difference(got[0], zeros(got[0].shape(), DType::f64)), 0.01);
}

TEST(Attention, LaterTokensDoNotChangeEarlierRowsByABit) {
  const Sizes s{1, 150, 150, 2, 1, 16};
  TensorList before = random_qkv(s, 41);
  TensorList after = random_qkv(s, 51);
  for (const int64_t t : {0, 5, 63, 64, 100}) {
    for (size_t n = 0; n < 3; ++n) {
      before[n] = converted(before[n], DType::f32);
      after[n] = copy_of(before[n]);
      Tensor future = sliced(after[n], 1, t + 1, 150);
      fill(future, 100);
    }
    const Tensor y = attention(before[0], before[1], before[2]);
    const Tensor z = attention(after[0], after[1], after[2]);
    EXPECT_TRUE(same_bits(sliced(y, 1, 0, t + 1), sliced(z, 1, 0, t + 1))) << "t " << t;
    EXPECT_FALSE(same_bits(sliced(y, 1, t + 1, 150), sliced(z, 1, t + 1, 150))) << "t " << t;
  }
}

TEST(Attention, RowsOfABatchDoNotSeeEachOther) {
  const TensorList x = random_qkv({3, 70, 70, 2, 1, 16}, 61);
  const Tensor dy = random_tensor(x[0].shape(), 62);
  const Tensor y = attention(x[0], x[1], x[2]);
  const TensorList dx = gradients_of(x, {}, dy);
  for (int64_t b = 0; b < 3; ++b) {
    const TensorList row = {sliced(x[0], 0, b, b + 1), sliced(x[1], 0, b, b + 1),
                            sliced(x[2], 0, b, b + 1)};
    EXPECT_TRUE(same_bits(attention(row[0], row[1], row[2]), sliced(y, 0, b, b + 1)));
    const TensorList alone = gradients_of(row, {}, sliced(dy, 0, b, b + 1));
    for (size_t n = 0; n < 3; ++n) {
      EXPECT_LE(difference(alone[n], sliced(dx[n], 0, b, b + 1)), 1e-14);
    }
  }
}

TEST(Attention, GradientsHaveTheSameBitsInEveryRun) {
  for (const int64_t B : {1, 3}) {  // one pair of batch row and key head is cut into parts
    TensorList x = random_qkv({B, 300, 300, 4, 1, 32}, 65);
    for (Tensor& part : x) {
      part = converted(part, DType::bf16);
    }
    const Tensor dy = converted(random_tensor(x[0].shape(), 66), DType::bf16);
    const TensorList first = gradients_of(x, {}, dy);
    for (int run = 0; run < 5; ++run) {
      const TensorList again = gradients_of(x, {}, dy);
      for (size_t n = 0; n < 3; ++n) {
        EXPECT_TRUE(same_bits(again[n], first[n])) << "B " << B << ", input " << n;
      }
    }
  }
}

TEST(Attention, ReadsSlicesOfAFusedProjectionInPlace) {
  const Tensor fused = converted(random_tensor({2, 70, 4 + 2 + 2, 16}, 71), DType::bf16);
  const TensorList slices = {sliced(fused, 2, 0, 4), sliced(fused, 2, 4, 6),
                             sliced(fused, 2, 6, 8)};
  const TensorList copies = {dense(slices[0]), dense(slices[1]), dense(slices[2])};
  const Tensor dy = converted(random_tensor({2, 70, 4, 16}, 72), DType::bf16);
  EXPECT_TRUE(same_bits(attention(slices[0], slices[1], slices[2]),
                        attention(copies[0], copies[1], copies[2])));
  const TensorList a = gradients_of(slices, {}, dy);
  const TensorList b = gradients_of(copies, {}, dy);
  for (size_t n = 0; n < 3; ++n) {
    EXPECT_TRUE(same_bits(a[n], b[n]));
  }
}

TEST(Attention, DecodingOneTokenAtATimeGivesThePrefillRows) {
  const TensorList x = random_qkv({2, 90, 90, 4, 2, 64}, 81);
  const Tensor q = converted(x[0], DType::f32);
  const Tensor k = converted(x[1], DType::f32);
  const Tensor v = converted(x[2], DType::f32);
  const Tensor prefill = attention(q, k, v);
  for (int64_t t = 0; t < 90; t += 13) {
    const Tensor row = attention(sliced(q, 1, t, t + 1), sliced(k, 1, 0, t + 1),
                                 sliced(v, 1, 0, t + 1), {.query_offset = t});
    EXPECT_LE(difference(row, sliced(prefill, 1, t, t + 1)), 2e-6) << "t " << t;
  }
}

TEST(Attention, DecodesFromALongCache) {
  for (const int64_t T : {1, 2, 4}) {
    AttentionOptions options;
    options.query_offset = 3000 - T;
    expect_naive({1, T, 3000, 4, 2, 64}, options, "long cache");
    options.window = 1000;
    options.softcap = 2;
    options.key_lengths = tensor_of<int32_t>({2999}, {1});
    expect_naive({1, T, 3000, 2, 1, 80}, options, "long cache, every option");
  }
}

TEST(Attention, LargeScoresNeitherOverflowNorVanish) {
  TensorList x = random_qkv({1, 70, 70, 2, 2, 16}, 91);
  x[0] = random_tensor({1, 70, 2, 16}, 91, 200);
  x[1] = random_tensor({1, 70, 2, 16}, 92, 200);
  const Tensor expected = Naive(x[0], x[1], x[2], {}).forward();
  EXPECT_LE(difference(attention(x[0], x[1], x[2]), expected), 1e-9);
}

TEST(Attention, ANotANumberInAKeyReachesTheRowsThatSeeIt) {
  TensorList x = random_qkv({1, 70, 70, 1, 1, 16}, 95);
  for (Tensor& part : x) {
    part = converted(part, DType::f32);
  }
  x[1].mutable_values<float>()[68 * 16] = std::nanf("");
  const Tensor y = attention(x[0], x[1], x[2]);
  EXPECT_FALSE(std::isnan(y.values<float>()[67 * 16 - 1]));
  EXPECT_TRUE(std::isnan(y.values<float>()[68 * 16]));
  EXPECT_TRUE(std::isnan(y.values<float>()[69 * 16]));
}

// Bytes above what was live before, at the peak of a forward and backward of T tokens.
int64_t peak_of(int64_t T) {
  TensorList x;
  for (Tensor& part : x = random_qkv({1, T, T, 2, 1, 16}, 97)) {
    part = converted(part, DType::f32);
  }
  const Tensor dy = converted(random_tensor(x[0].shape(), 98), DType::f32);
  const int64_t live = allocator(cpu_device).stats().live_total;
  allocator(cpu_device).reset_peak();
  gradients_of(x, {}, dy);
  return allocator(cpu_device).stats().peak_total - live;
}

TEST(Attention, PeakMemoryGrowsLinearlyWithTheTokens) {
  const int64_t at_1024 = peak_of(1024);
  const int64_t at_2048 = peak_of(2048);
  EXPECT_LE(at_2048, 2 * at_1024 + 4096);
  EXPECT_LT(at_2048, int64_t{2048} * 2048);  // one T×T buffer of bytes
}

TEST(Attention, CountsTheFlopsOfVisiblePairs) {
  const auto forward = [](const Sizes& s, const AttentionOptions& options) {
    const TensorList x = random_qkv(s, 99);
    reset_flops();
    attention(x[0], x[1], x[2], options);
    return counted_flops();
  };
  EXPECT_EQ(forward({2, 10, 10, 3, 1, 8}, {}), 4 * 2 * 3 * 8 * 55);
  EXPECT_EQ(forward({2, 10, 12, 3, 1, 8}, bidirectional()), 4 * 2 * 3 * 8 * 120);
  EXPECT_EQ(forward({1, 10, 10, 1, 1, 8}, {.window = 3}), 4 * 8 * (1 + 2 + 8 * 3));
  EXPECT_EQ(forward({1, 2, 10, 1, 1, 8}, {.query_offset = 8}), 4 * 8 * (9 + 10));
  EXPECT_EQ(forward({1, 4, 4, 1, 1, 8}, {.causal = false, .window = 2}), 4 * 8 * (2 + 3 + 3 + 2));
  const TensorList x = random_qkv({2, 10, 10, 3, 1, 8}, 100);
  reset_flops();
  gradients_of(x, {}, random_tensor(x[0].shape(), 101));
  EXPECT_EQ(counted_flops(), (4 + 10) * 2 * 3 * 8 * 55);
}

TEST(Attention, RefusesASecondDerivative) {
  TensorList x = random_qkv({1, 5, 5, 1, 1, 8}, 103);
  for (Tensor& part : x) {
    require_grad(part);
  }
  const Tensor y = attention(x[0], x[1], x[2]);
  const TensorList dx = gradients({y}, x, {full(y.shape(), 1, DType::f64)}, CreateGraph::yes);
  expect_error([&] { gradients({dx[0]}, x, {full(dx[0].shape(), 1, DType::f64)}); },
               "attention's backward: has no second derivative");
}

}  // namespace
}  // namespace ingot::testing
