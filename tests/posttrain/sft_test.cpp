#include "ingot/posttrain/sft.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ingot/autograd/backward.h"
#include "ingot/autograd/record.h"
#include "ingot/data/sample.h"
#include "ingot/models/decoder.h"
#include "ingot/nn/freeze.h"
#include "ingot/nn/initialise.h"
#include "ingot/ops/cross_entropy.h"
#include "ingot/ops/elementwise.h"
#include "ingot/ops/shape.h"
#include "ingot/posttrain/added_tokens.h"
#include "ingot/posttrain/neftune.h"
#include "ingot/tensor/copy.h"
#include "ingot/tensor/factories.h"
#include "tests/support/message.h"
#include "tests/support/oracle.h"

namespace ingot::testing {
namespace {

using ::testing::HasSubstr;

// Every file of methods/losses that tells losses of tokens and their mask.
TEST(Sft, GivesTheLossAndGradientsOfTheOracle) {
  int64_t files = 0;
  for (const auto& path : oracle_files("methods/losses")) {
    const Oracle oracle = read_oracle(path);
    if (!oracle.inputs.contains("token_losses") || !oracle.inputs.contains("mask")) {
      continue;
    }
    ++files;
    for (const DType dtype : {DType::f64, DType::f32}) {
      Tensor losses = copy_of(oracle.input("token_losses", dtype));
      require_grad(losses);
      const Tensor mask = oracle.input("mask", dtype);
      std::vector<Loss> parts;
      TensorList sums;
      std::vector<int64_t> counts;
      for (int64_t micro = 0; micro < losses.size(0); ++micro) {
        const auto of = [&](const Tensor& x) {
          return reshape(slice(x, 0, micro, micro + 1), {x.size(1), x.size(2)});
        };
        parts.push_back(sft_loss(of(losses), of(mask), sft_mean_named(oracle.word("mode"))));
        const Loss tokens = sft_loss(of(losses), of(mask), SftMean::token_mean);
        sums.push_back(reshape(detach(tokens.sum), {1}));
        counts.push_back(static_cast<int64_t>(tokens.count));
      }
      const Tensor loss = mean_of(parts);
      backward(loss);
      expect_entry(oracle, "loss", detach(loss), dtype);
      expect_entry(oracle, "sum_per_microbatch", concat(sums, int64_t{0}), dtype);
      EXPECT_EQ(nlohmann::json(counts), oracle.expected["tokens_per_microbatch"]);
      expect_entry(oracle, "grad_token_losses", grad(losses), dtype);
    }
  }
  EXPECT_GE(files, 3);
  EXPECT_THAT(message_of(ErrorKind::config, [] { sft_mean_named("mean"); }),
              HasSubstr("sft: there is no mean 'mean'"));
}

DecoderConfig tiny(const std::string& positions) {
  DecoderConfig config;
  config.vocab = 40;
  config.width = 32;
  config.layers = 2;
  config.heads = 2;
  config.hidden = 48;
  config.context = 64;
  config.positions = positions;
  return config;
}

TokenRow row_of_length(int64_t length, uint64_t seed) {
  const Philox random({seed, 0, 0});
  TokenRow row;
  for (int64_t i = 0; i < length; ++i) {
    row.ids.push_back(static_cast<TokenId>(random.bits(static_cast<uint64_t>(i)) % 40));
    row.learnt.push_back(i > length / 3 ? 1 : 0);
  }
  return row;
}

Tensor loss_of(const Decoder& model, const Batch& batch) {
  BatchInfo info;
  info.documents = *batch.documents;
  info.positions = *batch.positions;
  CrossEntropyOptions options;
  options.ignore_index = ignored_label;
  return linear_cross_entropy(model.hidden(batch.ids, info), model.output_weight(), batch.labels,
                              options);
}

TensorDict gradients_of(Decoder& model, const std::vector<std::vector<Sample>>& batches,
                        double& loss) {
  model.require_gradients();
  loss = 0;
  for (const auto& samples : batches) {
    const Tensor sum = loss_of(model, batch_of(samples));
    backward(sum);
    loss += sum.item();
  }
  return model.parameters().mapped([](const std::string&, const Tensor& p) {
    const Tensor g = copy_of(grad(p));
    return g;
  });
}

TEST(Sft, PackedGradientsAreTheUnpackedOnes) {
  for (const std::string positions : {"rope", "learned", "alibi"}) {
    const std::vector<TokenRow> rows = {row_of_length(17, 1), row_of_length(9, 2),
                                        row_of_length(30, 3), row_of_length(5, 4)};
    const auto fresh = [&] {
      auto model = std::make_unique<Decoder>(tiny(positions), DType::f64);
      nn::initialise(*model, {}, 3);
      return model;
    };
    double packed_loss = 0, padded_loss = 0, single_loss = 0;
    const auto packed = fresh();
    const TensorDict a = gradients_of(*packed, {{Sample{rows}}}, packed_loss);
    const auto padded = fresh();
    const TensorDict b = gradients_of(
        *padded, {{Sample{{rows[0]}}, Sample{{rows[1]}}, Sample{{rows[2]}}, Sample{{rows[3]}}}},
        padded_loss);
    const auto single = fresh();
    const TensorDict c = gradients_of(
        *single, {{Sample{{rows[0]}}}, {Sample{{rows[1]}}}, {Sample{{rows[2], rows[3]}}}},
        single_loss);
    EXPECT_NEAR(packed_loss, padded_loss, 1e-9 * std::abs(padded_loss)) << positions;
    EXPECT_NEAR(packed_loss, single_loss, 1e-9 * std::abs(padded_loss)) << positions;
    for (const auto& [name, gradient] : a) {
      EXPECT_LT(normwise_error(gradient, b.at(name)), 1e-9) << positions << " " << name;
      EXPECT_LT(normwise_error(gradient, c.at(name)), 1e-9) << positions << " " << name;
    }
  }
}

TEST(Neftune, AddsNoiseOfTheDocumentsLength) {
  const Tensor x = zeros({1, 20, 50}, DType::f32);
  std::vector<int32_t> numbers(20, 0);
  std::fill(numbers.begin() + 16, numbers.end(), 1);
  const Tensor documents = tensor_of(numbers, {1, 20});
  const Tensor y = with_embedding_noise(x, documents, 5, {1, 2, 3});
  const auto values = y.values<float>();
  const auto extreme = [&](size_t begin, size_t end) {
    float most = 0;
    for (size_t i = begin * 50; i < end * 50; ++i) {
      most = std::max(most, std::abs(values[i]));
    }
    return static_cast<double>(most);
  };
  EXPECT_NEAR(extreme(0, 16), 5 / std::sqrt(16.0 * 50), 0.01);
  EXPECT_NEAR(extreme(16, 20), 5 / std::sqrt(4.0 * 50), 0.02);
  EXPECT_LT(normwise_error(with_embedding_noise(x, documents, 5, {1, 2, 3}), y), 1e-12);
  EXPECT_GT(normwise_error(with_embedding_noise(x, documents, 5, {1, 3, 3}), y), 0.1);
}

TEST(AddedTokens, StartAsTheMeanOfTheOthers) {
  const Tensor table = tensor_of(std::vector<float>{1, 2, 3, 4, 100, 100}, {3, 2});
  const Tensor out = with_added_rows(table, 5, {2, 3});
  EXPECT_EQ(out.shape(), (Shape{5, 2}));
  const auto values = out.values<float>();
  EXPECT_EQ(std::vector<float>(values.begin(), values.end()),
            (std::vector<float>{1, 2, 3, 4, 2, 3, 2, 3, 2, 3}));
  EXPECT_THAT(message_of(ErrorKind::argument,
                         [&] {
                           with_added_rows(table, 2, {2, 1});
                         }),
              HasSubstr("do not follow the trained rows"));
}

TEST(Freeze, LeavesTheNamedParametersAlone) {
  Decoder model(tiny("rope"), DType::f32);
  nn::initialise(model, {}, 1);
  const TensorDict trained = nn::freeze(model, {"layers.0.**", "embedding.*"});
  EXPECT_FALSE(trained.contains("layers.0.attention.wq.weight"));
  EXPECT_TRUE(trained.contains("layers.1.attention.wq.weight"));
  backward(loss_of(model, batch_of(std::vector<Sample>{Sample{{row_of_length(9, 2)}}})));
  for (const auto& [name, p] : model.parameters()) {
    EXPECT_EQ(trained.contains(name), p.node() != nullptr && grad(p).defined()) << name;
  }
  EXPECT_THAT(message_of(ErrorKind::config, [&] { nn::freeze(model, {"layer.0.**"}); }),
              HasSubstr("freeze: no parameter matches 'layer.0.**'; the nearest is "));
  EXPECT_THAT(message_of(ErrorKind::config, [&] { nn::freeze(model, {"**"}); }),
              HasSubstr("every parameter is frozen"));
}

}  // namespace
}  // namespace ingot::testing
