#include "ingot/generate/best_of.h"

#include <gtest/gtest.h>

#include <cmath>

#include "ingot/generate/log_probability.h"
#include "tests/generate/tiny_model.h"
#include "tests/support/op_case.h"

namespace ingot::testing {
namespace {

GenerateConfig few(int64_t tokens, int64_t seed = 1) {
  GenerateConfig config;
  config.max_tokens = tokens;
  config.seed = seed;
  return config;
}

TEST(BestOf, AnswersAreThoseOfGenerateWithTheirLogProbabilities) {
  const auto model = random_model(tiny_config());
  const Tokens prompt = random_tokens(9, 1);
  const auto answers = sampled_answers(*model, prompt, few(7), 5, mean_log_probability);
  const auto expected = generate(*model, std::vector<Tokens>(5, prompt), few(7));
  for (size_t i = 0; i < answers.size(); ++i) {
    EXPECT_EQ(answers[i].tokens, expected[i]);
    double sum = 0;
    Tokens text = prompt;
    for (const int64_t token : answers[i].tokens) {
      const Tensor logits = whole_logits(*model, text);
      sum += LogProbabilities(logits.values<float>()).of(token);
      text.push_back(token);
    }
    EXPECT_NEAR(answers[i].log_probability, sum, 1e-4);  // seven f32 sums
    EXPECT_NEAR(answers[i].score, sum / 7, 1e-5);
  }
  const size_t best = best_of(answers);
  for (const Sampled& answer : answers) {
    EXPECT_LE(answer.score, answers[best].score);
  }
}

TEST(BestOf, MeanScoreDoesNotFallWithN) {
  const auto model = random_model(tiny_config());
  const Tokens prompt = random_tokens(9, 1);
  const Scorer scorer = [](const Sampled& answer) {
    return static_cast<double>(answer.tokens[0]);  // any scorer will do
  };
  double before = -1;
  for (const int64_t n : {1, 2, 4, 8}) {
    double sum = 0;
    for (int64_t seed = 0; seed < 30; ++seed) {
      const auto answers = sampled_answers(*model, prompt, few(1, seed), n, scorer);
      sum += answers[best_of(answers)].score;
    }
    EXPECT_GE(sum, before) << n;  // the first n choices of a seed are those of a larger n
    before = sum;
  }
}

// With a scorer that knows what is right, best-of-n is right exactly when one of n answers is: the
// unbiased estimate of pass@n from N samples of which c are right is 1 − C(N−c, n)/C(N, n).
TEST(BestOf, WithAPerfectVerifierIsRightAsOftenAsPassAtN) {
  const auto model = random_model(tiny_config());
  const Tokens prompt = random_tokens(9, 1);
  const auto right = [](const Sampled& answer) { return answer.tokens[0] % 4 == 0 ? 1.0 : 0.0; };
  const int64_t total = 400, n = 4;
  const auto samples = sampled_answers(*model, prompt, few(1, 99), total, right);
  double correct = 0;
  for (const Sampled& sample : samples) {
    correct += sample.score;
  }
  double none = 1;
  for (int64_t i = 0; i < n; ++i) {
    none *= (static_cast<double>(total - i) - correct) / static_cast<double>(total - i);
  }
  const int64_t rounds = 150;
  double hits = 0;
  for (int64_t seed = 0; seed < rounds; ++seed) {
    const auto answers = sampled_answers(*model, prompt, few(1, seed), n, right);
    hits += answers[best_of(answers)].score;
  }
  const double expected = 1 - none;
  const double error = std::sqrt(expected * (1 - expected) / static_cast<double>(rounds));
  EXPECT_NEAR(hits / static_cast<double>(rounds), expected, 3.5 * error + 0.02);
}

TEST(BestOf, DivergesAtMostByTheLogarithmOfN) {
  EXPECT_EQ(best_of_divergence(1), 0);
  EXPECT_NEAR(best_of_divergence(4), 1.3862943611 - 0.75, 1e-9);
}

TEST(BestOf, RefusesNone) {
  const auto model = random_model(tiny_config());
  expect_error([&] { sampled_answers(*model, {1}, few(1), 0, mean_log_probability); },
               "best of n: n is 0");
  expect_error([] { best_of({}); }, "best of n: no answers");
}

TEST(Majority, IsTheAnswerGivenMostOftenOfEqualsTheEarliest) {
  using Answers = std::vector<std::optional<std::string>>;
  const auto vote = majority(Answers{"3", std::nullopt, "4", "5", "4"});
  EXPECT_EQ(vote.value().answer, "4");
  EXPECT_EQ(vote.value().votes, 2);
  EXPECT_EQ(vote.value().counted, 4);
  EXPECT_EQ(majority(Answers{"b", "a", "a", "b"}).value().answer, "b");
  EXPECT_FALSE(majority(Answers{std::nullopt}));
  EXPECT_FALSE(majority(Answers{}));
}

}  // namespace
}  // namespace ingot::testing
