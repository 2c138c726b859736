#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "ingot/base/philox.h"
#include "ingot/generate/best_of.h"
#include "ingot/posttrain/answer_rows.h"
#include "ingot/posttrain/best_of_n.h"
#include "ingot/posttrain/reference_cache.h"
#include "ingot/tensor/copy.h"
#include "ingot/tensor/factories.h"
#include "tests/support/op_case.h"
#include "tests/support/paths.h"

namespace ingot::testing {
namespace {

TEST(BestOfN, TakesTheBestAnswerOfEachPrompt) {
  const std::vector<double> scores = {1, 3, 3, -1, -2, -0.5};
  EXPECT_EQ(best_of_n(scores, 3), (std::vector<int64_t>{1, 5}));
  EXPECT_EQ(best_of_n(scores, 1).size(), 6U);
  expect_error([&] { best_of_n(scores, 4); }, "best_of_n: 6 scores are no whole groups of 4");
  const std::vector<double> wrong = {1, std::numeric_limits<double>::quiet_NaN()};
  expect_error([&] { best_of_n(wrong, 2); }, "best_of_n: score 1 is no number");
}

// The chosen answer's distribution over ranks: the best of n uniform draws has density n xⁿ⁻¹,
// whose KL from the uniform one is the bound.
TEST(BestOfN, MovesAsFarFromTheModelAsItsBoundSays) {
  const Philox random({7, 0, 0});
  constexpr int64_t n = 4;
  constexpr int prompts = 20000, cells = 50;
  std::vector<double> scores(static_cast<size_t>(n) * prompts);
  for (size_t i = 0; i < scores.size(); ++i) {
    scores[i] = random.uniform_f64(i);
  }
  std::vector<double> share(cells);
  for (const int64_t i : best_of_n(scores, n)) {
    share[static_cast<size_t>(scores[static_cast<size_t>(i)] * cells)] += 1.0 / prompts;
  }
  double kl = 0;
  for (const double p : share) {
    kl += p > 0 ? p * std::log(p * cells) : 0;
  }
  EXPECT_NEAR(kl, best_of_divergence(n), 0.01);
  EXPECT_EQ(best_of_divergence(1), 0);
}

TEST(RejectionSampling, KeepsDifferentAnswersThatPassTheBestFirst) {
  const std::vector<double> scores = {0.2, 0.9, 0.9, 0.7, 0, 0, 0, 0.5};
  const std::vector<uint64_t> answers = {1, 2, 2, 3, 4, 5, 6, 7};
  EXPECT_EQ(accepted(scores, answers, 4, {0.5, 0}), (std::vector<int64_t>{1, 3, 7}));
  EXPECT_EQ(accepted(scores, answers, 4, {0.5, 1}), (std::vector<int64_t>{1, 7}));
  EXPECT_TRUE(accepted(scores, answers, 4, {2, 0}).empty());
  const std::vector<uint64_t> fewer = {1};
  expect_error([&] { accepted(scores, fewer, 4, {}); }, "accepted: 8 scores for 1 answers");
}

AnswerRow row_of(std::vector<int64_t> prompt, std::vector<int64_t> answer) {
  return answer_row(prompt, answer);
}

// Σ of the ids of a row: what a "model" gives.
SequenceLogprobs sums_of_ids(const Batch& batch) {
  std::vector<double> sums;
  const auto T = static_cast<size_t>(batch.ids.size(1));
  for (size_t r = 0; r < static_cast<size_t>(batch.ids.size(0)); ++r) {
    double sum = 0;
    for (size_t t = 0; t < T; ++t) {
      sum += static_cast<double>(batch.ids.values<int64_t>()[r * T + t]);
    }
    sums.push_back(sum);
  }
  return {tensor_of(sums, {static_cast<int64_t>(sums.size())}), {}};
}

TEST(ReferenceCache, FindsAnAnswerInAnyBatchAndAfterSaving) {
  const std::vector<AnswerRow> rows = {row_of({1, 2}, {3, 4}), row_of({5}, {6}),
                                       row_of({1, 2, 3}, {4})};
  ReferenceCache cache;
  int calls = 0;
  const auto counting = [&](const Batch& batch) {
    ++calls;
    return sums_of_ids(batch);
  };
  const auto each = [&](int64_t i) {
    return answer_batch(std::span(rows).subspan(static_cast<size_t>(i), 1), 64);
  };
  cache.add(counting, 3, each);
  cache.add(counting, 3, each);
  EXPECT_EQ(calls, 3);
  const TemporaryFolder folder;
  cache.save(folder / "reference.safetensors", "abc");
  const ReferenceCache back = ReferenceCache::load(folder / "reference.safetensors", "abc");
  const std::vector<AnswerRow> mixed = {rows[2], rows[0], row_of({5}, {6})};
  const SequenceLogprobs found = back(answer_batch(mixed, 64));
  // The last token of a row is a label alone.
  EXPECT_EQ(found.sums.values<float>()[0], 6);
  EXPECT_EQ(found.sums.values<float>()[1], 6);
  EXPECT_EQ(found.sums.values<float>()[2], 5);
  EXPECT_EQ(found.lengths.values<float>()[1], 2);
  // The same tokens with another part of them learnt are another answer.
  const std::vector<AnswerRow> other = {row_of({1}, {2, 3, 4})};
  expect_error([&] { back(answer_batch(other, 64)); },
               "reference: an answer has no log-probability of the reference model: row 0 of a "
               "batch is not among the 3 that were computed");
  expect_error([&] { ReferenceCache::load(folder / "reference.safetensors", "def"); },
               "holds log-probabilities of another reference model: their weights' hash is abc, "
               "this one's is def");
}

}  // namespace
}  // namespace ingot::testing
