#include "ingot/generate/speculative.h"

#include <gtest/gtest.h>

#include <array>
#include <map>

#include "tests/generate/tiny_model.h"
#include "tests/support/op_case.h"

namespace ingot::testing {
namespace {

TEST(Judge, KeepsProposalsByTheRatioOfTheDistributions) {
  const std::vector<std::vector<double>> q = {{0.5, 0.5}, {0.5, 0.5}};
  const std::vector<std::vector<double>> p = {{0.25, 0.75}, {0.8, 0.2}, {1, 0}};
  const Tokens proposals = {0, 0};
  const auto verdict = [&](std::array<double, 2> keep) {
    return judge(proposals, q, p, keep, std::array{0.1, 0.1, 0.1});
  };
  EXPECT_EQ(verdict({0.49, 0.99}).kept, 2);  // min(1, 0.25 / 0.5) = 0.5, then 1
  EXPECT_EQ(verdict({0.49, 0.99}).next, 0);
  EXPECT_EQ(verdict({0.51, 0.0}).kept, 0);
  EXPECT_EQ(verdict({0.51, 0.0}).next, 1);  // p − q is positive for token 1 alone
  expect_error(
      [&] {
        judge(proposals, q, {q.data(), 2}, std::array{0.0, 0.0}, std::array{0.0, 0.0, 0.0});
      },
      "2 proposals have 2 distributions of the draft and 2 of the model");
}

// The first token written is distributed as p, whatever the draft proposes.
TEST(Judge, LeavesTheModelsDistributionWhateverTheDraftIs) {
  const std::vector<double> p = {0.1, 0.2, 0.3, 0.4};
  const std::vector<double> q = {0.6, 0.1, 0.3, 0.0};
  const std::vector<std::vector<double>> qs = {q}, ps = {p, p};
  const Philox random({9, 0, 0});
  const uint64_t rounds = 40000;
  std::vector<double> counts(4, 0);
  for (uint64_t i = 0; i < rounds; ++i) {
    const int64_t proposal = token_at(q, random.uniform_f64(4 * i));
    const Accepted verdict =
        judge(std::array{proposal}, qs, ps, std::array{random.uniform_f64(4 * i + 1)},
              std::array{random.uniform_f64(4 * i + 2), 0.0});
    ++counts[static_cast<size_t>(verdict.kept == 1 ? proposal : verdict.next)];
  }
  double chi_square = 0;
  for (size_t i = 0; i < p.size(); ++i) {
    const double expected = p[i] * static_cast<double>(rounds);
    chi_square += (counts[i] - expected) * (counts[i] - expected) / expected;
  }
  EXPECT_LT(chi_square, 16.3);  // 99.9 % quantile at 3 degrees of freedom
}

TEST(Speculative, GreedyTextIsThatOfTheModelAlone) {
  DecoderConfig small = tiny_config();
  small.layers = 1;
  for (const DType dtype : {DType::f32, DType::bf16}) {
    const auto model = random_model(tiny_config(), dtype);
    const auto draft = random_model(small, dtype, 5);
    GenerateConfig config;
    config.max_tokens = 30;
    config.sampling.temperature = 0;
    for (uint64_t i = 0; i < 4; ++i) {
      const Tokens prompt = random_tokens(3 + 4 * i, i);
      const Tokens expected = generate(*model, {prompt}, config)[0];
      for (const int64_t proposals : {1, 3, 7, 9}) {
        EXPECT_EQ(generate_speculatively(*model, *draft, prompt, config, proposals).tokens,
                  expected);
      }
      const SpeculativeAnswer own = generate_speculatively(*model, *model, prompt, config, 4);
      EXPECT_EQ(own.tokens, expected);
      EXPECT_EQ(own.kept, own.proposed);  // the model agrees with itself
      EXPECT_LE(own.readings, 6);         // 30 tokens, 5 a reading
    }
  }
}

TEST(Speculative, SamplesAsOftenAsTheModelDoes) {
  const auto model = random_model(tiny_config());
  const auto draft = random_model(tiny_config(), DType::f32, 5);
  const Tokens prompt = random_tokens(6, 1);
  GenerateConfig config;
  config.max_tokens = 2;
  config.sampling.top_k = 3;
  config.sampling.temperature = 1.5;
  // The second token given the first, over all first ones: what judge() decides.
  std::map<std::pair<int64_t, int64_t>, double> expected;
  const auto first =
      token_probabilities(whole_logits(*model, prompt).values<float>(), config.sampling);
  for (int64_t a = 0; a < 40; ++a) {
    if (first[static_cast<size_t>(a)] > 0) {
      Tokens text = prompt;
      text.push_back(a);
      const auto second =
          token_probabilities(whole_logits(*model, text).values<float>(), config.sampling);
      for (int64_t b = 0; b < 40; ++b) {
        const double p = first[static_cast<size_t>(a)] * second[static_cast<size_t>(b)];
        if (p > 0) {
          expected[{a, b}] = p;
        }
      }
    }
  }
  ASSERT_EQ(expected.size(), 9U);
  std::map<std::pair<int64_t, int64_t>, double> counts;
  const int64_t draws = 1500;
  for (int64_t seed = 0; seed < draws; ++seed) {
    config.seed = seed;
    const Tokens got = generate_speculatively(*model, *draft, prompt, config, 2).tokens;
    ASSERT_EQ(got.size(), 2U);
    counts[{got[0], got[1]}] += 1;
  }
  double chi_square = 0;
  for (const auto& [pair, p] : expected) {
    const double mean = p * static_cast<double>(draws);
    chi_square += (counts[pair] - mean) * (counts[pair] - mean) / mean;
  }
  EXPECT_LT(chi_square, 26.1);  // 99.9 % quantile at 8 degrees of freedom
}

TEST(Speculative, EndsAtStopTokensAndWhereTheContextEnds) {
  const auto model = random_model(tiny_config());
  const auto draft = random_model(tiny_config(), DType::f32, 5);
  const Tokens prompt = random_tokens(6, 1);
  GenerateConfig config;
  config.max_tokens = 1000;
  config.sampling.temperature = 0;
  const Tokens whole = generate_speculatively(*model, *draft, prompt, config, 3).tokens;
  EXPECT_EQ(whole.size(), 48 - 6 + 1U);
  config.stop_tokens = {whole[9]};
  const Tokens stopped = generate_speculatively(*model, *draft, prompt, config, 3).tokens;
  EXPECT_EQ(stopped.back(), whole[9]);
  EXPECT_LE(stopped.size(), 10U);
  config.max_tokens = 0;
  EXPECT_TRUE(generate_speculatively(*model, *draft, prompt, config, 3).tokens.empty());
}

TEST(Speculative, RefusesADraftOfAnotherVocabulary) {
  const auto model = random_model(tiny_config());
  DecoderConfig other = tiny_config();
  other.vocab = 41;
  const auto draft = random_model(other);
  expect_error([&] { generate_speculatively(*model, *draft, {1}, {}, 3); },
               "the draft has another vocabulary: it has 41 tokens, the model 40");
  expect_error([&] { generate_speculatively(*model, *model, {1}, {}, 0); },
               "0 proposals at a time");
  expect_error([&] { generate_speculatively(*model, *model, {}, {}, 1); },
               "the prompt has 0 tokens");
  DecoderConfig turning = tiny_config();
  turning.rope.scaling = "longrope";
  turning.rope.original_context = 16;
  turning.rope.short_factors = {1, 1};
  turning.rope.long_factors = {2, 2};
  const auto turns = random_model(turning);
  expect_error([&] { generate_speculatively(*turns, *turns, {1}, {}, 1); },
               "the angles of this model depend on the text's length (longrope)");
}

}  // namespace
}  // namespace ingot::testing
