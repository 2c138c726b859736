#include "ingot/generate/logit_rules.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/op_case.h"

namespace ingot::testing {
namespace {

std::vector<float> changed(const LogitRules& rules, const Tokens& text, int64_t prompt = 0) {
  std::vector<float> logits = {2, -2, 1, 0.5F, 3};
  apply(rules, text, prompt, logits);
  return logits;
}

TEST(LogitRules, RepetitionDividesPositiveLogitsOfTheWholeTextAndMultipliesNegativeOnes) {
  LogitRules rules;
  rules.repetition_penalty = 2;
  EXPECT_EQ(changed(rules, {0, 1, 0, 1}, 2), (std::vector<float>{1, -4, 1, 0.5F, 3}));
}

TEST(LogitRules, PresenceAndFrequencyCountWhatWasWrittenAlone) {
  LogitRules rules;
  rules.presence_penalty = 1;
  rules.frequency_penalty = 0.25;
  EXPECT_EQ(changed(rules, {0, 0, 2, 2, 4}, 2), (std::vector<float>{2, -2, -0.5F, 0.5F, 1.75F}));
  rules.presence_penalty = -1;
  rules.frequency_penalty = 0;
  EXPECT_EQ(changed(rules, {3}), (std::vector<float>{2, -2, 1, 1.5F, 3}));
}

TEST(LogitRules, BiasIsAddedAfterThePenalties) {
  LogitRules rules;
  rules.repetition_penalty = 2;
  rules.bias = {{0, 10}, {4, -100}};
  EXPECT_EQ(changed(rules, {0}), (std::vector<float>{11, -2, 1, 0.5F, -97}));
}

TEST(LogitRules, BannedSequencesAreNeverCompleted) {
  LogitRules rules;
  rules.banned = {{2, 3, 4}, {1}, {}};
  EXPECT_EQ(changed(rules, {2, 3}), (std::vector<float>{2, -HUGE_VALF, 1, 0.5F, -HUGE_VALF}));
  EXPECT_EQ(changed(rules, {3}), (std::vector<float>{2, -HUGE_VALF, 1, 0.5F, 3}));
  EXPECT_EQ(changed(rules, {3, 2}), (std::vector<float>{2, -HUGE_VALF, 1, 0.5F, 3}));
}

TEST(LogitRules, RefuseTokensOutsideTheVocabulary) {
  LogitRules rules;
  rules.bias = {{7, 1}};
  expect_error([&] { changed(rules, {0}); }, "logit rules: token 7 is outside the vocabulary of 5");
  EXPECT_FALSE(rules.change_nothing());
  EXPECT_TRUE(LogitRules().change_nothing());
}

}  // namespace
}  // namespace ingot::testing
