#include "ingot/generate/sampler.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "ingot/base/json.h"
#include "ingot/base/json_library.h"
#include "ingot/generate/logit_rules.h"
#include "tests/support/op_case.h"
#include "tests/support/paths.h"

namespace ingot::testing {
namespace {

void expect_probabilities(const nlohmann::json& entry, const std::string& key,
                          const SamplingConfig& config) {
  const auto got = token_probabilities(entry["logits"].get<std::vector<float>>(), config);
  const auto expected = entry["probs"][key].get<std::vector<double>>();
  ASSERT_EQ(got.size(), expected.size());
  for (size_t i = 0; i < got.size(); ++i) {
    // The oracle's logits are decimals, ours their f32.
    EXPECT_NEAR(got[i], expected[i], 2e-7) << key << ", token " << i;
  }
}

TEST(TokenProbabilities, FollowTheOracle) {
  if (!data_folder()) {
    GTEST_SKIP() << no_data_folder;
  }
  for (const auto& entry : parse_json_file(*data_folder() / "num-torch-ops" / "sampling.json")) {
    for (const double temperature : {0.5, 1.0, 1.7}) {
      const std::string key = concat("temperature=", temperature);
      expect_probabilities(entry, key, {.temperature = temperature});
    }
    expect_probabilities(entry, "top_k=3", {.top_k = 3});
    expect_probabilities(entry, "top_p=0.8 (smallest set with cumulative >= 0.8)", {.top_p = 0.8});
    expect_probabilities(entry, "min_p=0.1", {.min_p = 0.1});
    expect_probabilities(entry, "temperature=0.7 then top_k=6 then top_p=0.9",
                         {.temperature = 0.7, .top_k = 6, .top_p = 0.9});
    expect_probabilities(entry, "typical_p=0.7", {.typical_p = 0.7});
    const auto penalised = [&](const LogitRules& rules, const char* key) {
      auto logits = entry["logits"].get<std::vector<float>>();
      apply(rules, entry["previous_tokens"].get<Tokens>(), 0, logits);
      nlohmann::json changed = entry;
      changed["logits"] = logits;
      expect_probabilities(changed, key, {});
    };
    LogitRules repetition;
    repetition.repetition_penalty = 1.3;
    penalised(repetition, "repetition_penalty=1.3");
    LogitRules counts;
    counts.frequency_penalty = 0.5;
    counts.presence_penalty = 0.4;
    penalised(counts, "frequency_penalty=0.5 presence_penalty=0.4");
    EXPECT_EQ(entry["probs"].size(), 10u) << "a distribution that no one compares";
    double entropy = 0;
    for (const double p : token_probabilities(entry["logits"].get<std::vector<float>>(), {})) {
      entropy -= p > 0 ? p * std::log(p) : 0;
    }
    EXPECT_NEAR(entropy, entry["entropy"].get<double>(), 1e-6);
  }
}

double entropy_of(const std::vector<double>& p) {
  double out = 0;
  for (const double one : p) {
    out -= one > 0 ? one * std::log(one) : 0;
  }
  return out;
}

TEST(TokenProbabilities, SpreadWithTheTemperatureFromTheLikeliestTokenToAll) {
  const std::vector<float> logits = {0.2F, -1, 1, 0.5F, -3};
  double before = 0;
  for (const double temperature : {0.0, 0.1, 0.3, 0.7, 1.0, 1.5, 3.0, 30.0}) {
    const double entropy = entropy_of(token_probabilities(logits, {.temperature = temperature}));
    EXPECT_TRUE(temperature == 0 ? entropy == 0 : entropy > before) << temperature;
    before = entropy;
  }
  EXPECT_NEAR(before, std::log(5.0), 0.01);
  double total = 0;
  for (const float logit : logits) {
    total += std::exp(static_cast<double>(logit));
  }
  const std::vector<double> one = token_probabilities(logits, {.temperature = 1});
  for (size_t i = 0; i < logits.size(); ++i) {
    EXPECT_NEAR(one[i], std::exp(static_cast<double>(logits[i])) / total, 1e-12);
  }
}

TEST(TokenProbabilities, FiltersAlwaysLeaveOneToken) {
  const std::vector<float> logits = {1, 3, 3, 2};
  for (const SamplingConfig& config :
       {SamplingConfig{.temperature = 0}, SamplingConfig{.top_k = 1}, SamplingConfig{.top_p = 0},
        SamplingConfig{.top_k = 1, .top_p = 0, .min_p = 1}}) {
    EXPECT_EQ(token_probabilities(logits, config), (std::vector<double>{0, 1, 0, 0}));
  }
  const std::vector<double> both = token_probabilities(logits, {.min_p = 1});
  EXPECT_EQ(both, (std::vector<double>{0, 0.5, 0.5, 0}));
}

// Entropy 1.213; surprises 0.693, 1.386, 2.079, 2.079: the second token is the most usual.
TEST(TokenProbabilities, TypicalKeepsTheTokensOfMostUsualSurprise) {
  const std::vector<float> logits = {std::log(4.0F), std::log(2.0F), 0, 0};
  const auto expect = [&](double mass, const std::vector<double>& expected) {
    const auto got = token_probabilities(logits, {.typical_p = mass});
    for (size_t i = 0; i < expected.size(); ++i) {
      EXPECT_NEAR(got[i], expected[i], 1e-7) << mass << ", token " << i;
    }
  };
  expect(0, {0, 1, 0, 0});
  expect(0.2, {0, 1, 0, 0});
  expect(0.3, {2.0 / 3, 1.0 / 3, 0, 0});
  expect(0.8, {4.0 / 7, 2.0 / 7, 1.0 / 7, 0});
  expect(1, {0.5, 0.25, 0.125, 0.125});
}

TEST(TokenProbabilities, RefuseLogitsThatAreNoNumbers) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float inf = std::numeric_limits<float>::infinity();
  expect_error(
      [&] {
        token_probabilities(std::vector<float>{0, nan}, {});
      },
      "sampling: logit 1 is not a number");
  expect_error(
      [&] {
        likeliest(std::vector<float>{0, inf});
      },
      "sampling: the largest logit is inf");
}

TEST(TokenAt, DrawsTokensAsOftenAsTheyAreLikely) {
  const std::vector<double> p = token_probabilities(std::vector<float>{0.2F, -1, 1, 0.5F, -3}, {});
  const int64_t draws = 20000;
  std::vector<double> counts(p.size(), 0);
  const Philox random({5, 0, 0});
  for (int64_t i = 0; i < draws; ++i) {
    counts[static_cast<size_t>(token_at(p, random.uniform_f64(static_cast<uint64_t>(i))))] += 1;
  }
  double chi_square = 0;
  for (size_t i = 0; i < p.size(); ++i) {
    const double expected = p[i] * static_cast<double>(draws);
    chi_square += (counts[i] - expected) * (counts[i] - expected) / expected;
  }
  EXPECT_LT(chi_square, 18.5);  // 99.9 % quantile at 4 degrees of freedom
}

TEST(TokenAt, NeverDrawsARemovedToken) {
  EXPECT_EQ(token_at(std::vector<double>{0, 0.5, 0.5, 0}, 0), 1);
  EXPECT_EQ(token_at(std::vector<double>{0, 0.5, 0.4999999, 0}, 0.99999999), 2);
}

}  // namespace
}  // namespace ingot::testing
