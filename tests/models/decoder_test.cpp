#include "ingot/models/decoder.h"

#include <gtest/gtest.h>

#include <cmath>

#include "ingot/autograd/backward.h"
#include "ingot/autograd/grad_mode.h"
#include "ingot/autograd/record.h"
#include "ingot/nn/initialise.h"
#include "ingot/ops/cross_entropy.h"
#include "ingot/ops/shape.h"
#include "ingot/ops/softmax.h"
#include "ingot/tensor/copy.h"
#include "ingot/tensor/factories.h"
#include "tests/support/op_case.h"

namespace ingot::testing {
namespace {

DecoderConfig tiny(const std::string& architecture) {
  DecoderConfig c;
  c.architecture = architecture;
  c.vocab = 40;
  c.width = 16;
  c.layers = 2;
  c.heads = 4;
  c.kv_heads = architecture == "llama" ? 2 : 0;
  c.context = 32;
  return c;
}

std::unique_ptr<Decoder> made(const DecoderConfig& config, DType dtype = DType::f32,
                              double deviation = 0.3) {
  auto model = std::make_unique<Decoder>(config, dtype);
  nn::initialise(*model, {"normal", deviation}, 11);
  return model;
}

Tensor random_ids(int64_t rows, int64_t tokens, int64_t vocab, uint64_t seed) {
  const Philox random({seed, 0, 0});
  std::vector<int64_t> ids;
  for (int64_t i = 0; i < rows * tokens; ++i) {
    ids.push_back(static_cast<int64_t>(random.word(static_cast<uint64_t>(i))) % vocab);
  }
  return tensor_of(ids, {rows, tokens});
}

// Σ over all texts of three tokens of p(text), with token 0 standing for the start.
double probability_of_everything(const DecoderConfig& config) {
  const int64_t V = config.vocab;
  std::vector<int64_t> ids;
  for (int64_t i = 0; i < V * V * V; ++i) {
    ids.insert(ids.end(), {0, i / (V * V), i / V % V, i % V});
  }
  const Tensor texts = tensor_of(ids, {V * V * V, 4});
  const Tensor logp = log_softmax(made(config, DType::f64)->logits(texts));
  const auto values = logp.values<double>();
  double total = 0;
  for (size_t text = 0; text < ids.size() / 4; ++text) {
    double sum = 0;
    for (size_t t = 0; t < 3; ++t) {
      sum += values[(text * 4 + t) * static_cast<size_t>(V) +
                    static_cast<size_t>(ids[text * 4 + t + 1])];
    }
    total += std::exp(sum);
  }
  return total;
}

TEST(Decoder, GivesAllTextsTogetherProbabilityOne) {
  for (const char* architecture : {"gpt2", "llama"}) {
    DecoderConfig c = tiny(architecture);
    c.vocab = 7;
    EXPECT_NEAR(probability_of_everything(c), 1, 1e-5) << architecture;
  }
}

TEST(Decoder, LaterTokensDoNotChangeEarlierLogits) {
  for (const char* positions : {"none", "sinusoidal", "learned", "rope", "alibi"}) {
    DecoderConfig c = tiny("llama");
    c.positions = positions;
    const auto model = made(c);
    const Tensor ids = random_ids(1, 30, 40, 1);
    const Tensor other = concat({slice(ids, 1, 0, 13), random_ids(1, 17, 40, 2)}, int64_t{1});
    EXPECT_TRUE(
        same_bits(slice(model->logits(ids), 1, 0, 13), slice(model->logits(other), 1, 0, 13)))
        << positions;
  }
}

TEST(Decoder, OneRowAndEightRowsAgree) {
  const auto model = made(tiny("llama"));
  const Tensor ids = random_ids(8, 20, 40, 1);
  const Tensor together = model->logits(ids);
  for (int64_t row = 0; row < 8; ++row) {
    const Tensor alone = model->logits(contiguous(slice(ids, 0, row, row + 1)));
    EXPECT_LE(difference(alone, slice(together, 0, row, row + 1)), 1e-6);
  }
}

TEST(Decoder, RecordsNothingWithoutGradients) {
  const auto model = made(tiny("gpt2"));
  model->require_gradients();
  const NoGrad quiet;
  EXPECT_EQ(model->logits(random_ids(1, 5, 40, 1)).node(), nullptr);
}

TEST(Decoder, ATiedHeadIsTheEmbedding) {
  const auto model = made(tiny("gpt2"));
  model->require_gradients();
  EXPECT_EQ(model->output_weight().storage(), model->embedding.weight.storage());
  EXPECT_EQ(model->output_weight().node(), model->embedding.weight.node());
  EXPECT_FALSE(model->parameters().contains("head.weight"));
  DecoderConfig untied = tiny("gpt2");
  untied.tied = false;
  EXPECT_TRUE(made(untied)->parameters().contains("head.weight"));
}

TEST(Decoder, NamesItsParametersByPath) {
  const TensorDict parameters = made(tiny("llama"))->parameters();
  EXPECT_EQ(parameters.at("layers.1.attention.wk.weight").shape(), (Shape{8, 16}));
  EXPECT_EQ(parameters.at("layers.0.mlp.gate.weight").shape(), (Shape{64, 16}));
  EXPECT_EQ(parameters.at("embedding.weight").shape(), (Shape{40, 16}));
  EXPECT_EQ(parameters.at("norm.weight").shape(), (Shape{16}));
}

TEST(Decoder, DocumentsInOneRowAreAsIfAlone) {
  const auto model = made(tiny("llama"));
  const Tensor a = random_ids(1, 9, 40, 1);
  const Tensor b = random_ids(1, 7, 40, 2);
  BatchInfo info;
  info.positions = concat({arange(9, DType::i64), arange(7, DType::i64)}, int64_t{0});
  info.positions = reshape(info.positions, {1, 16});
  info.documents = documents_of(info.positions);
  const Tensor both = model->logits(concat({a, b}, int64_t{1}), info);
  EXPECT_LE(difference(slice(both, 1, 0, 9), model->logits(a)), 1e-6);
  EXPECT_LE(difference(slice(both, 1, 9, 16), model->logits(b)), 1e-6);
}

TEST(Decoder, DropoutFollowsTheTrainersCounters) {
  DecoderConfig c = tiny("gpt2");
  c.dropout = 0.5;
  const auto model = made(c);
  const Tensor ids = random_ids(2, 8, 40, 1);
  const Tensor plain = model->logits(ids);
  model->randomness()->training = true;
  const Tensor first = model->logits(ids);
  EXPECT_FALSE(same_bits(first, plain));
  EXPECT_TRUE(same_bits(model->logits(ids), first));
  model->randomness()->step = 1;
  EXPECT_FALSE(same_bits(model->logits(ids), first));
}

// One training step without an optimizer.
void walk(const DecoderConfig& config, DType dtype, Device device) {
  Decoder model(config, dtype, device);
  model.require_gradients();
  const Tensor ids = moved(random_ids(2, 32, config.vocab, 1), device);
  backward(linear_cross_entropy(model.hidden(ids), model.output_weight(), ids));
}

TEST(Decoder, OnTheMetaDeviceItsPeakIsThatOfTheRealRun) {
  for (const char* architecture : {"gpt2", "llama"}) {
    for (const DType dtype : {DType::f32, DType::bf16}) {
      int64_t peaks[2];
      for (const Device device : {cpu_device, meta_device}) {
        allocator(device).reset_peak();
        const int64_t before = allocator(device).stats().live_total;
        walk(tiny(architecture), dtype, device);
        peaks[device == meta_device ? 1 : 0] = allocator(device).stats().peak_total - before;
      }
      // The batch itself is made on the cpu in both runs, and moved: 512 bytes.
      EXPECT_NEAR(static_cast<double>(peaks[1]), static_cast<double>(peaks[0]), 1024)
          << architecture << " " << dtype;
    }
  }
}

TEST(Decoder, RefusesWhatItCannotCompute) {
  DecoderConfig c = tiny("llama");
  c.heads = 3;
  expect_error([&] { Decoder model(c); },
               "model: width must be a multiple of heads: width is 16, heads is 3");
  c = tiny("llama");
  c.kv_heads = 3;
  expect_error([&] { Decoder model(c); },
               "model: heads must be a multiple of kv_heads: heads is 4, kv_heads is 3");
  const auto model = made(tiny("gpt2"));
  expect_error([&] { model->logits(random_ids(1, 33, 40, 1)); },
               "decoder: the sequence is longer than the learned positions: 33 tokens, context 32");
  expect_error([&] { model->logits(arange(4, DType::i64)); },
               "decoder: takes ids of shape [B, T]: got [4]");
}

}  // namespace
}  // namespace ingot::testing
