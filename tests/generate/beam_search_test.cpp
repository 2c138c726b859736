#include "ingot/generate/beam_search.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "ingot/generate/generate.h"
#include "ingot/generate/log_probability.h"
#include "tests/generate/tiny_model.h"
#include "tests/support/op_case.h"

namespace ingot::testing {
namespace {

DecoderConfig few_tokens() {
  DecoderConfig config = tiny_config();
  config.vocab = 5;
  return config;
}

// Every text of at most `most` tokens with its score, by whole forwards.
void enumerate(const Decoder& model, const BeamConfig& config, const Tokens& prompt, Tokens written,
               double log_probability, std::vector<Hypothesis>& out) {
  Tokens text = prompt;
  text.insert(text.end(), written.begin(), written.end());
  const Tensor logits = whole_logits(model, text);
  const LogProbabilities log_p(logits.values<float>());
  for (int64_t token = 0; token < model.config().vocab; ++token) {
    Tokens next = written;
    next.push_back(token);
    const double sum = log_probability + log_p.of(token);
    const auto n = static_cast<double>(next.size());
    if (token == config.stop_tokens[0] || static_cast<int64_t>(next.size()) == config.max_tokens) {
      out.push_back({next, sum, sum / std::pow((5 + n) / 6, config.length_penalty)});
    } else {
      enumerate(model, config, prompt, next, sum, out);
    }
  }
}

TEST(BeamSearch, WithABeamForEveryTextFindsTheBestOfAll) {
  const auto model = random_model(few_tokens());
  for (const double penalty : {0.0, 0.7, 2.0}) {
    BeamConfig config;
    config.width = 64;  // 4³ texts go on
    config.max_tokens = 4;
    config.length_penalty = penalty;
    config.stop_tokens = {2};
    const Tokens prompt = {1, 4, 0};
    std::vector<Hypothesis> all;
    enumerate(*model, config, prompt, {}, 0, all);
    std::sort(all.begin(), all.end(),
              [](const Hypothesis& a, const Hypothesis& b) { return a.score > b.score; });
    const auto found = beam_search(*model, prompt, config);
    ASSERT_EQ(found.size(), 64U);
    for (size_t i = 0; i < found.size(); ++i) {
      EXPECT_NEAR(found[i].score, all[i].score, 1e-5) << i;
      EXPECT_NEAR(found[i].log_probability, all[i].log_probability, 1e-5) << i;
    }
    EXPECT_EQ(found[0].tokens, all[0].tokens);
  }
}

TEST(BeamSearch, OfWidthOneIsGreedy) {
  const auto model = random_model(tiny_config());
  GenerateConfig greedy;
  greedy.sampling.temperature = 0;
  greedy.max_tokens = 20;
  BeamConfig config;
  config.width = 1;
  config.max_tokens = 20;
  const Tokens prompt = random_tokens(7, 1);
  EXPECT_EQ(beam_search(*model, prompt, config)[0].tokens, generate(*model, {prompt}, greedy)[0]);
}

TEST(BeamSearch, WiderBeamsFindTextsAtLeastAsLikely) {
  const auto model = random_model(tiny_config());
  BeamConfig config;
  config.max_tokens = 12;
  config.length_penalty = 0;
  config.stop_tokens = {7};
  double greedy = 0;
  for (const int64_t width : {1, 4, 16}) {
    config.width = width;
    const auto found = beam_search(*model, random_tokens(7, 1), config);
    EXPECT_LE(static_cast<int64_t>(found.size()), width);
    greedy = width == 1 ? found[0].log_probability : greedy;
    EXPECT_GE(found[0].log_probability, greedy - 1e-9);
    EXPECT_TRUE(std::is_sorted(found.begin(), found.end(),
                               [](const auto& a, const auto& b) { return a.score > b.score; }));
  }
}

TEST(BeamSearch, EndsWhereTheContextEnds) {
  const auto model = random_model(tiny_config());
  BeamConfig config;
  config.width = 2;
  config.max_tokens = 100;
  EXPECT_EQ(beam_search(*model, random_tokens(40, 1), config)[0].tokens.size(), 8U);
  expect_error(
      [&] { beam_search(*model, random_tokens(48, 1), config); },
      "beam search: the prompt has 48 tokens; give at least 1, and fewer than the context, 48");
  expect_error([&] { beam_search(*model, {}, config); }, "the prompt has 0 tokens");
}

}  // namespace
}  // namespace ingot::testing
