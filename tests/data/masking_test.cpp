#include "ingot/data/masking.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "ingot/tensor/factories.h"
#include "ingot/tensor/layout.h"
#include "tests/support/message.h"

namespace ingot::testing {
namespace {

using ::testing::HasSubstr;

// 5 frames every row and stands at its ends; 6 is the mask.
const MaskingTokens tokens = {6, 200, {5, 7}};

Tensor rows_of_text(int64_t rows, int64_t T) {
  std::vector<int64_t> ids;
  for (int64_t i = 0; i < rows * T; ++i) {
    const bool end = i % T == 0 || i % T == T - 1;
    ids.push_back(end ? 5 : 8 + i * 37 % 190);
  }
  return tensor_of(ids, {rows, T});
}

// Over a million tokens.
TEST(Masking, HidesTheSharesThatItIsToldTo) {
  const Tensor ids = rows_of_text(8000, 128);
  const Batch batch = masked_batch(ids, {}, tokens, 1, 0);
  const auto before = ids.values<int64_t>();
  const auto after = batch.ids.values<int64_t>();
  const auto labels = batch.labels.values<int64_t>();
  double inside = 0, chosen = 0, mask = 0, kept = 0, other = 0;
  for (size_t i = 0; i < before.size(); ++i) {
    inside += before[i] == 5 ? 0 : 1;
    if (labels[i] == ignored_label) {
      ASSERT_EQ(after[i], before[i]);
      continue;
    }
    ASSERT_EQ(labels[i], before[i]);
    ASSERT_NE(before[i], 5);
    ++chosen;
    mask += after[i] == 6 ? 1 : 0;
    kept += after[i] == before[i] ? 1 : 0;
    other += after[i] != 6 && after[i] != before[i] ? 1 : 0;
    ASSERT_NE(after[i], 5);
    ASSERT_NE(after[i], 7);
    ASSERT_LT(after[i], 200);
  }
  EXPECT_NEAR(chosen / inside, 0.15, 0.0005);
  EXPECT_NEAR(mask / chosen, 0.8, 0.005);
  EXPECT_NEAR(other / chosen, 0.1, 0.005);  // one draw in 190 is the token itself
  EXPECT_NEAR(kept / chosen, 0.1, 0.005);
}

TEST(Masking, DependsOnSeedAndSampleAlone) {
  const Tensor ids = rows_of_text(6, 20);
  const Batch all = masked_batch(ids, {}, tokens, 1, 10);
  const Batch later = masked_batch(sliced(ids, 0, 4, 6), {}, tokens, 1, 14);
  const auto whole = all.ids.values<int64_t>();
  const auto part = later.ids.values<int64_t>();
  EXPECT_TRUE(std::equal(part.begin(), part.end(), whole.begin() + 80));
  const Batch other = masked_batch(ids, {}, tokens, 2, 10);
  EXPECT_FALSE(std::ranges::equal(other.labels.values<int64_t>(), all.labels.values<int64_t>()));
  const Batch next = masked_batch(ids, {}, tokens, 1, 16);
  EXPECT_FALSE(std::ranges::equal(next.labels.values<int64_t>(), all.labels.values<int64_t>()));
}

TEST(Masking, AsksForATokenOfEveryRowThatHasOne) {
  const Tensor ids = tensor_of(std::vector<int64_t>{5, 9, 5, 5, 5, 5}, {2, 3});
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const Batch batch = masked_batch(ids, {}, tokens, seed, 0);
    EXPECT_EQ(batch.labels.values<int64_t>()[1], 9);
    EXPECT_EQ(std::ranges::count(batch.labels.values<int64_t>(), ignored_label), 5);
  }
  const Batch none = masked_batch(ids, {.share = 0}, tokens, 1, 0);
  EXPECT_EQ(std::ranges::count(none.labels.values<int64_t>(), ignored_label), 6);
}

TEST(Masking, RefusesWhatCannotBeDrawn) {
  const Tensor ids = rows_of_text(1, 4);
  EXPECT_THAT(message_of(ErrorKind::config,
                         [&] {
                           masked_batch(ids, {0.15, 0.8, 0.3}, tokens, 1, 0);
                         }),
              HasSubstr("sum to 1 at most: mask is 0.8, random is 0.3"));
  EXPECT_THAT(message_of(ErrorKind::argument,
                         [&] {
                           masked_batch(ids, {}, {0, 2, {0, 1}}, 1, 0);
                         }),
              HasSubstr("no token is left to draw: 2 tokens, 2 untouched"));
}

}  // namespace
}  // namespace ingot::testing
