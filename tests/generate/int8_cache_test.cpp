// Keys and values in 8 bits against those in the model's type: what it costs, and what it saves.
#include <gtest/gtest.h>

#include <cmath>
#include <iostream>

#include "ingot/base/files.h"
#include "ingot/generate/log_probability.h"
#include "ingot/generate/scheduler.h"
#include "ingot/models/pretrained.h"
#include "ingot/tensor/copy.h"
#include "ingot/text/load_tokenizer.h"
#include "tests/generate/tiny_model.h"
#include "tests/support/op_case.h"
#include "tests/support/paths.h"

namespace ingot::testing {
namespace {

// Logits [n, V] after each of the tokens behind the prompt, read one by one.
Tensor logits_of(const Decoder& model, const Tokens& tokens, size_t prompt, const std::string& kv) {
  PagedDecoding decoding(model, 64, 8, kv);
  PagedText text;
  text.tokens.assign(tokens.begin(), tokens.begin() + static_cast<int64_t>(prompt));
  decoding.begin(text, static_cast<int64_t>(tokens.size()));
  decoding.read_all(text);
  PagedText* const only = &text;
  TensorList out;
  for (size_t i = prompt; i < tokens.size(); ++i) {
    text.tokens.push_back(tokens[i]);
    out.push_back(copy_of(decoding.read_tokens({&only, 1})));
  }
  return concat(out, int64_t{0});
}

// How two sequences of distributions differ.
struct Distance {
  double divergence = 0;  // mean KL of the second from the first, nats a token
  double lost = 0;        // how much less likely, nats a token, the second finds the text
  double same = 0;        // share of places with the same likeliest token
};

Distance distance(const Tensor& exact, const Tensor& coded, const Tokens& tokens, size_t prompt) {
  Distance out;
  const auto vocab = static_cast<size_t>(exact.size(1));
  const auto places = static_cast<size_t>(exact.size(0));
  for (size_t i = 0; i < places; ++i) {
    const auto a = exact.values<float>().subspan(i * vocab, vocab);
    const auto b = coded.values<float>().subspan(i * vocab, vocab);
    const LogProbabilities p(a), q(b);
    for (size_t token = 0; token < vocab; ++token) {
      const auto id = static_cast<int64_t>(token);
      out.divergence += std::exp(p.of(id)) * (p.of(id) - q.of(id));
    }
    if (prompt + i + 1 < tokens.size()) {
      out.lost += p.of(tokens[prompt + i + 1]) - q.of(tokens[prompt + i + 1]);
    }
    out.same += std::ranges::max_element(a) - a.begin() == std::ranges::max_element(b) - b.begin();
  }
  const auto count = static_cast<double>(places);
  return {out.divergence / count, out.lost / count, out.same / count};
}

TEST(Int8Cache, MovesTheDistributionsOfAPublishedModelByNextToNothing) {
  if (!data_folder()) {
    GTEST_SKIP() << no_data_folder;
  }
  const auto folder = *data_folder() / "model-stories260k/hf";
  const Tokenizer tokenizer = load_tokenizer(folder);
  const std::string story =
      "Once upon a time, there was a little girl named Lily. She loved to play outside in the "
      "park. One day, she saw a big, red ball. She wanted to play with it, but it was too high. "
      "Lily's mom said, \"Lily, let's go to the park.\" Lily was sad and didn't know what to do. "
      "She said, \"I want to play with your ball, but I can't find it.\"";
  Tokens tokens;
  for (const TokenId id : tokenizer.encode(story, {.add_special = true})) {
    tokens.push_back(id);
  }
  for (const DType dtype : {DType::f32, DType::bf16}) {
    const Pretrained loaded = load_pretrained(folder, dtype);
    const size_t prompt = 20;
    const Tensor exact = logits_of(*loaded.model, tokens, prompt, "model");
    const Distance moved =
        distance(exact, logits_of(*loaded.model, tokens, prompt, "int8"), tokens, prompt);
    std::cout << name(dtype) << ": KL " << moved.divergence << " nats, text " << moved.lost
              << " nats less likely, same choice at " << moved.same << " of "
              << tokens.size() - prompt << " places\n";
    // Measured: 7.4e-4 beside f32 and 1.07e-3 beside bf16, whose heads have 8 features; the text is
    // 5.7e-3 nats less likely, and 3.6e-3 more; 109 of 110 choices are the same.
    EXPECT_LE(moved.divergence, 2e-3) << name(dtype);
    EXPECT_LE(std::abs(moved.lost), 1e-2) << name(dtype);
    EXPECT_GE(moved.same, 0.97) << name(dtype);
    EXPECT_GT(moved.divergence, 0) << "8 bits cannot be exact";
  }
}

TEST(Int8Cache, HoldsTwiceTheTokensOfABf16CacheInTheSameMemory) {
  DecoderConfig config = tiny_config();
  config.heads = 2;
  config.kv_heads = 2;
  config.head_dim = 64;
  config.context = 1000;
  const auto model = random_model(config, DType::bf16);
  SchedulerConfig room;
  room.rows = 1 << 20;
  const int64_t bytes = int64_t{64} << 20;
  const int64_t whole = cache_tokens_within(*model, room, bytes);
  room.kv = "int8";
  const int64_t coded = cache_tokens_within(*model, room, bytes);
  // 128 bytes a head and 64 + 4.
  EXPECT_NEAR(static_cast<double>(coded) / static_cast<double>(whole), 128.0 / 68, 1e-3);
  EXPECT_EQ(whole * 2 * 2 * 2 * 64 * 2, bytes);
}

TEST(Int8Cache, WritesTheSameForARequestAloneAndInAnyCompany) {
  const auto model = random_model(tiny_config());
  const auto written = [&](int64_t rows, size_t requests) {
    SchedulerConfig config;
    config.rows = rows;
    config.page_tokens = 8;
    config.kv = "int8";
    Scheduler scheduler(*model, config);
    std::vector<Tokens> out(requests);
    for (size_t i = 0; i < requests; ++i) {
      Request request;
      request.prompt = random_tokens(3 + i * 4, i / 2);
      request.config.max_tokens = 12;
      request.choice = static_cast<int64_t>(i);
      request.on_end = [&out, i](const Answer& answer) { out[i] = answer.tokens; };
      scheduler.add(std::move(request));
    }
    while (scheduler.step()) {
    }
    return out;
  };
  EXPECT_EQ(written(7, 7), written(1, 7));
}

}  // namespace
}  // namespace ingot::testing
