#include "ingot/nn/paged_cache.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "ingot/autograd/record.h"
#include "ingot/ops/shape.h"
#include "ingot/tensor/copy.h"
#include "ingot/tensor/factories.h"
#include "tests/support/op_case.h"

namespace ingot::testing {
namespace {

constexpr int64_t kv_heads = 2, width = 20, page = 8;

Tensor values_for(const Shape& shape, uint64_t seed, DType dtype) {
  return converted(random_tensor(shape, seed), dtype);
}

// What 8 bits with a scale for each token and head keep of x, in plain loops.
Tensor rounded_to_codes(const Tensor& x) {
  const Tensor from = converted(x, DType::f32);
  Tensor out = empty(from.shape(), DType::f32);
  const auto values = from.values<float>();
  auto kept = out.mutable_values<float>();
  for (size_t head = 0; head < values.size(); head += width) {
    const auto one = values.subspan(head, width);
    float most = 0;
    for (const float value : one) {
      most = std::max(most, std::abs(value));
    }
    for (size_t c = 0; c < width; ++c) {
      kept[head + c] = most / 127 * std::nearbyint(one[c] * (127 / most));
    }
  }
  return converted(out, x.dtype());
}

enum class Kept : uint8_t { whole, codes };

// Attention of one query a row over keys in pages, against the same keys side by side.
void expect_like_side_by_side(DType dtype, AttentionOptions options, Kept kept = Kept::whole) {
  const std::vector<int64_t> lengths = {5, 23, 8, 70};
  nn::PagedCache pool({1, 24, page, kv_heads, width}, kept == Kept::codes ? DType::i8 : dtype,
                      cpu_device);
  const std::vector<std::vector<int32_t>> tables = {
      {7}, {3, 1, 9}, {20, 4}, {0, 2, 5, 6, 8, 10, 11, 12, 13}};  // room for one token more
  for (size_t row = 0; row < lengths.size(); ++row) {
    const int64_t before = lengths[row] - 1;
    const Tensor k = values_for({1, before, kv_heads, width}, 10 + row, dtype);
    const Tensor v = values_for({1, before, kv_heads, width}, 20 + row, dtype);
    AttentionOptions unused;
    nn::PagedRows(pool, {{tables[row], 0}}).extend(0, k, v, unused);
  }
  std::vector<nn::PagedRows::Row> rows;
  for (size_t row = 0; row < lengths.size(); ++row) {
    rows.push_back({tables[row], lengths[row] - 1});
  }
  const Tensor q = values_for({4, 1, 2 * kv_heads, width}, 1, dtype);
  const Tensor k = values_for({4, 1, kv_heads, width}, 2, dtype);
  const Tensor v = values_for({4, 1, kv_heads, width}, 3, dtype);
  AttentionOptions paged = options;
  nn::PagedRows cached(pool, rows);
  const auto stored = cached.extend(0, k, v, paged);
  const Tensor y = attention(q, stored.k, stored.v, paged);
  for (size_t row = 0; row < lengths.size(); ++row) {
    const auto at = static_cast<int64_t>(row);
    AttentionOptions alone = options;
    alone.query_offset = lengths[row] - 1;
    const auto all = [&](const Tensor& last, uint64_t seed) {
      const Tensor out =
          concat({values_for({1, lengths[row] - 1, kv_heads, width}, seed + row, dtype),
                  slice(last, 0, at, at + 1)},
                 1);
      return kept == Kept::codes ? rounded_to_codes(contiguous(out)) : out;
    };
    const Tensor expected = attention(slice(q, 0, at, at + 1), all(k, 10), all(v, 20), alone);
    EXPECT_LE(difference(slice(y, 0, at, at + 1), expected), dtype == DType::f32 ? 1e-6 : 1e-2)
        << "row " << row;
  }
}

TEST(PagedCache, AttentionReadsPagesAsIfTheyLaySideBySide) {
  for (const DType dtype : {DType::f32, DType::bf16}) {
    expect_like_side_by_side(dtype, {});
    AttentionOptions windowed;
    windowed.window = 6;
    windowed.softcap = 3;
    expect_like_side_by_side(dtype, windowed);
    AttentionOptions sloped;
    sloped.alibi_slopes = tensor_of(std::vector<float>{0.5F, 0.25F, 0.1F, 0}, {4});
    expect_like_side_by_side(dtype, sloped);
  }
}

TEST(PagedCache, AttentionReadsCodesAsTheNumbersTheyStandFor) {
  for (const DType dtype : {DType::f32, DType::bf16, DType::f16}) {
    expect_like_side_by_side(dtype, {}, Kept::codes);
    AttentionOptions options;
    options.window = 6;
    options.softcap = 3;
    options.alibi_slopes = tensor_of(std::vector<float>{0.5F, 0.25F, 0.1F, 0}, {4});
    expect_like_side_by_side(dtype, options, Kept::codes);
  }
}

TEST(PagedCache, CodesAreExactForWhatAForwardItselfBringsAndRoundedForWhatWasBefore) {
  nn::PagedCache pool({1, 6, page, kv_heads, width}, DType::i8, cpu_device);
  const std::vector<int32_t> table = {4, 0, 2};
  const Tensor k = values_for({1, 21, kv_heads, width}, 1, DType::f32);
  const Tensor v = values_for({1, 21, kv_heads, width}, 2, DType::f32);
  AttentionOptions options;
  nn::PagedRows(pool, {{table, 0}}).extend(0, slice(k, 1, 0, 11), slice(v, 1, 0, 11), options);
  const auto stored = nn::PagedRows(pool, {{table, 11}})
                          .extend(0, slice(k, 1, 11, 21), slice(v, 1, 11, 21), options);
  EXPECT_EQ(options.query_offset, 11);
  const auto part = [](const Tensor& x, int64_t begin, int64_t end) {
    return contiguous(slice(x, 1, begin, end));
  };
  EXPECT_TRUE(same_bits(part(stored.k, 11, 21), part(k, 11, 21)));
  EXPECT_TRUE(same_bits(part(stored.v, 11, 21), part(v, 11, 21)));
  EXPECT_LE(difference(part(stored.k, 0, 11), rounded_to_codes(part(k, 0, 11))), 1e-6);
  EXPECT_LE(difference(part(stored.v, 0, 11), rounded_to_codes(part(v, 0, 11))), 1e-6);
  EXPECT_GT(difference(part(stored.k, 0, 11), part(k, 0, 11)), 1e-3);
}

TEST(PagedCache, CodesTakeAByteAnElementAndFourATokensHead) {
  const nn::KvCacheShape shape = {3, 5, page, kv_heads, width};
  EXPECT_EQ(nn::PagedCache(shape, DType::i8, cpu_device).bytes(),
            3 * 5 * page * 2 * kv_heads * (width + 4));
  EXPECT_EQ(nn::PagedCache::bytes_per_token(shape, DType::i8), 3 * 2 * kv_heads * (width + 4));
  EXPECT_EQ(nn::PagedCache(shape, DType::bf16, cpu_device).bytes(),
            5 * page * nn::PagedCache::bytes_per_token(shape, DType::bf16));
}

TEST(PagedCache, ANumberThatIsNotFiniteMakesItsTokensHeadNaN) {
  nn::PagedCache pool({1, 2, page, kv_heads, width}, DType::i8, cpu_device);
  Tensor k = values_for({1, 2, kv_heads, width}, 1, DType::f32);
  k.mutable_values<float>()[3] = HUGE_VALF;  // of token 0, head 0
  const std::vector<int32_t> table = {1};
  AttentionOptions options;
  nn::PagedRows(pool, {{table, 0}}).extend(0, k, k, options);
  const Tensor stored = nn::PagedRows(pool, {{table, 2}}).extend(0, k, k, options).k;
  const auto values = stored.values<float>();
  EXPECT_TRUE(std::isnan(values[0]));
  EXPECT_TRUE(std::isfinite(values[width]));
}

TEST(PagedCache, SeveralTokensOfOneTextAreGatheredFromItsPages) {
  nn::PagedCache pool({1, 6, page, kv_heads, width}, DType::f32, cpu_device);
  const std::vector<int32_t> table = {4, 0, 2};
  const Tensor k = values_for({1, 21, kv_heads, width}, 1, DType::f32);
  const Tensor v = values_for({1, 21, kv_heads, width}, 2, DType::f32);
  AttentionOptions options;
  nn::PagedRows(pool, {{table, 0}}).extend(0, slice(k, 1, 0, 11), slice(v, 1, 0, 11), options);
  EXPECT_EQ(options.query_offset, 0);
  const auto stored = nn::PagedRows(pool, {{table, 11}})
                          .extend(0, slice(k, 1, 11, 21), slice(v, 1, 11, 21), options);
  EXPECT_EQ(options.query_offset, 11);
  EXPECT_TRUE(same_bits(stored.k, k));
  EXPECT_TRUE(same_bits(stored.v, v));
}

TEST(PagedCache, CopiesPagesOfAllLayers) {
  nn::PagedCache pool({2, 3, page, kv_heads, width}, DType::f32, cpu_device);
  const std::vector<int32_t> from = {0}, to = {2};
  const Tensor k = values_for({1, 5, kv_heads, width}, 1, DType::f32);
  AttentionOptions options;
  nn::PagedRows source(pool, {{from, 0}});
  source.extend(0, k, k, options);
  source.extend(1, k, k, options);
  pool.copy_page(0, 2, 5);
  const Tensor more = values_for({1, 2, kv_heads, width}, 2, DType::f32);
  nn::PagedRows copied(pool, {{to, 5}});
  for (const int64_t layer : {0, 1}) {
    EXPECT_TRUE(same_bits(slice(copied.extend(layer, more, more, options).k, 1, 0, 5), k));
  }
}

TEST(PagedCache, RefusesWhatItHasNoRoomFor) {
  nn::PagedCache pool({1, 3, page, kv_heads, width}, DType::f32, cpu_device);
  const std::vector<int32_t> table = {1};
  const Tensor k = values_for({1, 9, kv_heads, width}, 1, DType::f32);
  AttentionOptions options;
  expect_error(
      [&] {
        nn::PagedRows(pool, {{table, 0}}).extend(0, k, k, options);
      },
      "paged cache: full: a row holds 0 tokens, 9 more come, its pages have room for 8");
  const Tensor two = values_for({2, 3, kv_heads, width}, 1, DType::f32);
  expect_error(
      [&] {
        nn::PagedRows(pool, {{table, 0}, {table, 0}}).extend(0, two, two, options);
      },
      "paged cache: 3 tokens at once of 2 rows");
}

TEST(PagedCache, AttentionRefusesPagesItCannotRead) {
  const Tensor q = zeros({1, 1, 2, 4}, DType::f32);
  const Tensor k = zeros({3, 8, 2, 4}, DType::f32);
  AttentionOptions options;
  options.pages = tensor_of(std::vector<int32_t>{0, 1}, {1, 2});
  expect_error([&] { attention(q, k, k, options); }, "keys in pages need key_lengths");
  options.key_lengths = tensor_of(std::vector<int32_t>{3}, {1});
  attention(q, k, k, options);
  expect_error(
      [&] {
        attention(zeros({1, 5, 2, 4}, DType::f32), k, k, options);
      },
      "keys in pages take at most 4 queries a row: got 5");
  const Tensor odd = zeros({3, 12, 2, 4}, DType::f32);
  expect_error([&] { attention(q, odd, odd, options); },
               "pages hold a divisor or a multiple of 64 tokens: got 12");
  expect_error(
      [&] {
        attention(zeros({1, 1, 3, 4}, DType::f32), k, k, options);
      },
      "takes q of shape [B, T, H, C] and pages k, v of [P, S, K, C]");
  expect_error(
      [&] {
        attention(zeros({1, 1, 2, 4}, DType::bf16), k, k, options);
      },
      "takes q, k and v of one floating-point type");
  const Tensor codes = zeros({3, 8, 2, 4}, DType::i8);
  expect_error([&] { attention(q, codes, codes, options); },
               "keys and values in 8 bits come with their scales, others without: k is i8");
  options.key_scales = options.value_scales = zeros({3, 8, 2, 1}, DType::f32);
  attention(q, codes, codes, options);
  expect_error([&] { attention(q, k, k, options); }, "others without: k is f32");
  expect_error(
      [&] {
        attention(zeros({1, 1, 2, 4}, DType::f64), codes, codes, options);
      },
      "takes queries in f32, bf16 or f16 where keys and values are in 8 bits: got f64");
  options.value_scales = zeros({3, 8, 2}, DType::f32);
  expect_error([&] { attention(q, codes, codes, options); },
               "attention: value_scales does not fit");
  AttentionOptions unpaged;
  unpaged.key_scales = options.key_scales;
  expect_error([&] { attention(q, q, q, unpaged); }, "have scales in pages alone");
  options.key_scales = options.value_scales = Tensor();
  Tensor wanted = zeros({1, 1, 2, 4}, DType::f32);
  require_grad(wanted);
  expect_error([&] { attention(wanted, k, k, options); }, "nothing is recorded; use NoGrad");
  options.pages = tensor_of(std::vector<int32_t>{0, 1}, {2, 1});
  expect_error([&] { attention(q, k, k, options); }, "attention: pages does not fit");
}

}  // namespace
}  // namespace ingot::testing
