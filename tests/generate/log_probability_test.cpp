#include "ingot/generate/log_probability.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/op_case.h"

namespace ingot::testing {
namespace {

TEST(LogProbabilities, AreThoseOfTheSoftmax) {
  const std::vector<float> logits = {0, std::log(2.0F), std::log(5.0F)};
  const LogProbabilities log_p(logits);
  EXPECT_NEAR(log_p.of(0), std::log(1.0 / 8), 1e-7);  // f32 logarithms
  EXPECT_NEAR(log_p.of(1), std::log(2.0 / 8), 1e-7);
  EXPECT_NEAR(log_p.of(2), std::log(5.0 / 8), 1e-7);
}

TEST(LogProbabilities, StayFiniteForLargeLogits) {
  const std::vector<float> logits = {1e4F, -1e4F, 1e4F};
  const LogProbabilities log_p(logits);
  EXPECT_NEAR(log_p.of(0), -std::log(2.0), 1e-12);
  EXPECT_NEAR(log_p.of(1), -2e4 - std::log(2.0), 1e-9);
}

TEST(LogProbabilities, NameTheLikeliestFirstAndOfEqualsTheEarlier) {
  const std::vector<float> logits = {1, 3, 3, 2};
  const auto best = LogProbabilities(logits).best(3);
  ASSERT_EQ(best.size(), 3U);
  EXPECT_EQ(best[0].first, 1);
  EXPECT_EQ(best[1].first, 2);
  EXPECT_EQ(best[2].first, 3);
  EXPECT_EQ(LogProbabilities(logits).best(9).size(), 4U);
  EXPECT_TRUE(LogProbabilities(logits).best(0).empty());
}

TEST(LogProbabilities, RefuseTokensAndLogitsThatAreNone) {
  const std::vector<float> logits = {1, 3};
  expect_error([&] { LogProbabilities(logits).of(2); },
               "log-probability: token 2 is outside the vocabulary of 2");
  const std::vector<float> broken = {0, std::nanf("")};
  expect_error([&] { LogProbabilities{broken}; }, "logit 1 is not a number");
}

}  // namespace
}  // namespace ingot::testing
