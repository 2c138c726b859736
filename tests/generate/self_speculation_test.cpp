#include "ingot/generate/self_speculation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ingot/nn/initialise.h"
#include "tests/support/message.h"

namespace ingot::testing {
namespace {

using ::testing::HasSubstr;

std::unique_ptr<Decoder> made(const std::string& kind, int64_t depth) {
  DecoderConfig c;
  c.vocab = 20;
  c.width = 16;
  c.layers = 2;
  c.heads = 2;
  c.context = 40;
  c.mtp = {depth, kind};
  auto model = std::make_unique<Decoder>(c);
  nn::initialise(*model, {"normal", 0.4}, 3);
  return model;
}

// Random heads propose nonsense; the text is the model's all the same.
TEST(SelfSpeculation, WritesTheTextOfGreedyDecoding) {
  for (const char* kind : {"sequential", "parallel"}) {
    const auto model = made(kind, 3);
    for (const Tokens& prompt : {Tokens{1}, Tokens{3, 1, 4, 1, 5}}) {
      GenerateConfig config;
      config.max_tokens = 25;
      config.sampling.temperature = 0;
      const SelfSpeculated found = generate_self_speculatively(*model, prompt, 25);
      EXPECT_EQ(found.tokens, generate(*model, {prompt}, config)[0]) << kind;
      EXPECT_GE(found.tokens_per_round(), 1);
    }
  }
}

TEST(SelfSpeculation, EndsWhereItIsToldTo) {
  const auto model = made("parallel", 2);
  const Tokens whole = generate_self_speculatively(*model, {2, 7}, 30).tokens;
  const SelfSpeculated stopped = generate_self_speculatively(*model, {2, 7}, 30, {whole[4]});
  const auto first = std::ranges::find(whole, whole[4]);
  EXPECT_EQ(stopped.tokens, Tokens(whole.begin(), first + 1));
  EXPECT_EQ(generate_self_speculatively(*model, {2, 7}, 3).tokens.size(), 3U);
  EXPECT_TRUE(generate_self_speculatively(*model, {2, 7}, 0).tokens.empty());
  EXPECT_EQ(generate_self_speculatively(*model, {2, 7}, 1000).tokens.size(), 38U);  // the context
}

TEST(SelfSpeculation, SaysWhatItNeeds) {
  EXPECT_THAT(message_of(ErrorKind::config,
                         [] { generate_self_speculatively(*made("parallel", 0), {1}, 3); }),
              HasSubstr("no heads that predict further tokens: model.mtp.depth is 0"));
  EXPECT_THAT(message_of(ErrorKind::argument,
                         [] { generate_self_speculatively(*made("parallel", 1), {}, 3); }),
              HasSubstr("the prompt is empty"));
}

}  // namespace
}  // namespace ingot::testing
