#include "ingot/generate/log_likelihood.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "ingot/autograd/grad_mode.h"
#include "ingot/nn/initialise.h"
#include "ingot/tensor/factories.h"
#include "tests/support/message.h"

namespace ingot::testing {
namespace {

using ::testing::HasSubstr;

DecoderConfig tiny() {
  DecoderConfig config;
  config.vocab = 30;
  config.width = 16;
  config.layers = 2;
  config.heads = 2;
  config.hidden = 32;
  config.context = 12;
  return config;
}

class LogLikelihood : public ::testing::Test {
 protected:
  LogLikelihood() : model(tiny(), DType::f64) { nn::initialise(model, {"normal", 0.3}, 5); }
  // ln p(token | before), from all logits of one text.
  double direct(const Tokens& before, int64_t token) const {
    const NoGrad quiet;
    const Tensor logits = model.logits(tensor_of(before, {1, static_cast<int64_t>(before.size())}));
    const auto values = logits.values<double>();
    const size_t row = (before.size() - 1) * 30;
    double total = 0;
    for (size_t v = 0; v < 30; ++v) {
      total += std::exp(values[row + v]);
    }
    return values[row + static_cast<size_t>(token)] - std::log(total);
  }
  Decoder model;
};

TEST_F(LogLikelihood, IsTheSumOverTheContinuationsTokens) {
  std::vector<Continuation> all;
  for (int64_t i = 0; i < 9; ++i) {
    Continuation one;
    for (int64_t t = 0; t <= i % 4; ++t) {
      one.context.push_back((7 * i + 3 * t) % 30);
    }
    for (int64_t t = 0; t <= i % 3; ++t) {
      one.tokens.push_back((5 * i + t) % 30);
    }
    all.push_back(one);
  }
  all.push_back({{1, 2}, {3}});
  all.push_back({{1, 2}, {4}});  // shares its text with the one before
  const std::vector<Likelihood> got = log_likelihoods(model, all, 16);
  for (size_t i = 0; i < all.size(); ++i) {
    double wanted = 0;
    Tokens before = all[i].context;
    for (const int64_t token : all[i].tokens) {
      wanted += direct(before, token);
      before.push_back(token);
    }
    EXPECT_NEAR(got[i].log_probability, wanted, 1e-5) << i;  // logits are looked at in f32
  }
}

TEST_F(LogLikelihood, TellsWhatTheModelWouldSayItself) {
  const Tokens context = {4, 9};
  int64_t best = 0;
  for (int64_t token = 1; token < 30; ++token) {
    best = direct(context, token) > direct(context, best) ? token : best;
  }
  const std::vector<Continuation> all = {{context, {best}}, {context, {(best + 1) % 30}}};
  const auto got = log_likelihoods(model, all);
  EXPECT_TRUE(got[0].greedy);
  EXPECT_FALSE(got[1].greedy);
}

TEST_F(LogLikelihood, KeepsTheEndOfWhatIsLongerThanTheContext) {
  Tokens long_context;
  for (int64_t t = 0; t < 40; ++t) {
    long_context.push_back(t * 7 % 30);
  }
  const std::vector<Continuation> all = {{long_context, {5}}};
  const Tokens end(long_context.end() - 12, long_context.end());
  EXPECT_NEAR(log_likelihoods(model, all)[0].log_probability, direct(end, 5), 1e-5);
}

TEST_F(LogLikelihood, OfATextPredictsEachTokenOnce) {
  Tokens text;
  for (int64_t t = 0; t < 30; ++t) {
    text.push_back(t * 11 % 30);
  }
  double wanted = 0;
  for (size_t t = 1; t < text.size(); ++t) {
    // Windows of 12 predictions, each with one token before it.
    const size_t start = (t - 1) / 12 * 12;
    wanted += direct(
        Tokens(text.begin() + static_cast<int64_t>(start), text.begin() + static_cast<int64_t>(t)),
        text[t]);
  }
  EXPECT_NEAR(text_log_probability(model, text), wanted, 1e-4);
  EXPECT_LT(text_log_probability(model, text, 10), 0);
}

TEST_F(LogLikelihood, RefusesWhatHasNoContext) {
  const std::vector<Continuation> bad = {{{}, {1}}};
  EXPECT_THAT(message_of(ErrorKind::argument, [&] { log_likelihoods(model, bad); }),
              HasSubstr("continuation 0 has 0 tokens of context and 1 of its own"));
  const std::vector<Continuation> too_long = {{{1}, Tokens(20, 2)}};
  EXPECT_THAT(message_of(ErrorKind::argument, [&] { log_likelihoods(model, too_long); }),
              HasSubstr("is longer than the model's context of 12"));
}

}  // namespace
}  // namespace ingot::testing
