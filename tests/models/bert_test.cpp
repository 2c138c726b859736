#include "ingot/models/bert.h"

#include <gtest/gtest.h>

#include "ingot/autograd/backward.h"
#include "ingot/autograd/record.h"
#include "ingot/base/files.h"
#include "ingot/nn/initialise.h"
#include "ingot/ops/cross_entropy.h"
#include "ingot/ops/index.h"
#include "ingot/ops/info_nce.h"
#include "ingot/ops/shape.h"
#include "ingot/optim/table.h"
#include "ingot/tensor/factories.h"
#include "tests/support/op_case.h"
#include "tests/support/paths.h"

namespace ingot::testing {
namespace {

BertConfig tiny() {
  BertConfig c;
  c.vocab = 30;
  c.width = 16;
  c.layers = 2;
  c.heads = 4;
  c.hidden = 32;
  c.context = 12;
  return c;
}

std::unique_ptr<Bert> made(const BertConfig& config, double deviation = 0.3) {
  auto model = std::make_unique<Bert>(config);
  nn::initialise(*model, {"normal", deviation}, 5);
  return model;
}

Tensor lengths(std::vector<int32_t> values) {
  const auto rows = static_cast<int64_t>(values.size());
  return tensor_of(values, {rows});
}

const Tensor& some_ids() {
  static const Tensor ids =
      tensor_of(std::vector<int64_t>{3, 9, 4, 7, 0, 0, 8, 2, 6, 5, 11, 12}, {2, 6});
  return ids;
}

TEST(Bert, EveryTokenSeesBothSidesButNoPadding) {
  const auto model = made(tiny());
  const auto first_logits = [&](int64_t last_token) {
    const std::vector<int64_t> ids = {3, 9, 4, last_token};
    return std::vector<Tensor>{model->logits(tensor_of(ids, {1, 4})),
                               model->logits(tensor_of(ids, {1, 4}), {{}, lengths({3})})};
  };
  const auto a = first_logits(7);
  const auto b = first_logits(8);
  const auto first = [](const Tensor& x) { return slice(x, 1, 0, 1); };
  EXPECT_GT(difference(first(a[0]), first(b[0])), 1e-3);
  EXPECT_TRUE(same_bits(contiguous(first(a[1])), contiguous(first(b[1]))));
}

TEST(Bert, TakesTheLossOfLabelledPlacesAlone) {
  const auto model = made(tiny());
  const Tensor labels = tensor_of(
      std::vector<int64_t>{-100, 9, -100, -100, -100, -100, 8, -100, -100, 1, -100, -100}, {2, 6});
  const BertInfo info = {{}, lengths({4, 6})};
  const Tensor whole = cross_entropy(model->logits(some_ids(), info), labels, Reduction::sum);
  EXPECT_NEAR(model->masked_loss(some_ids(), labels, info).item(), whole.item(), 1e-5);
}

TEST(Bert, ASentencesEmbeddingDoesNotDependOnItsPadding) {
  const auto model = made(tiny());
  const Tensor both = model->sentence_embedding(some_ids(), {{}, lengths({4, 6})});
  ASSERT_EQ(both.shape(), (Shape{2, 16}));
  const Tensor alone =
      model->sentence_embedding(contiguous(slice(slice(some_ids(), 0, 0, 1), 1, 0, 4)));
  EXPECT_LE(difference(slice(both, 0, 0, 1), alone), 1e-5);
  EXPECT_LE(difference(slice(both, 0, 1, 2),
                       model->sentence_embedding(contiguous(slice(some_ids(), 0, 1, 2)))),
            1e-5);
}

// Two orders of the same three words mean the same; different words do not.
TEST(Bert, LearnsWithInfoNceWhichSentencesBelongTogether) {
  const auto model = made(tiny(), 0.1);
  model->require_gradients();
  Optimizer optimizer(model->parameters(), make_rule(AdamWConfig()));
  const auto batch = [](uint64_t seed) {
    const Philox random({seed, 0, 0});
    std::vector<int64_t> query, key;
    for (uint64_t row = 0; row < 16; ++row) {
      int64_t words[3];
      for (uint64_t i = 0; i < 3; ++i) {
        words[i] = 1 + static_cast<int64_t>(random.word(3 * row + i) % 29);
      }
      query.insert(query.end(), {words[0], words[1], words[2]});
      key.insert(key.end(), {words[2], words[0], words[1]});
    }
    return std::pair{tensor_of(query, {16, 3}), tensor_of(key, {16, 3})};
  };
  double first = 0, last = 0;
  for (uint64_t step = 0; step < 80; ++step) {
    const auto [query, key] = batch(step);
    const Tensor loss = info_nce(model->sentence_embedding(query), model->sentence_embedding(key),
                                 0.1, Contrast::both_ways);
    backward(loss);
    optimizer.step(3e-3, 1);
    first = step == 0 ? loss.item() : first;
    last = loss.item();
  }
  EXPECT_LT(last, 0.1);
  EXPECT_GT(first, 2 * last);
  const auto [query, key] = batch(1000);  // unseen
  const Tensor scores =
      scaled_cosines(model->sentence_embedding(query), model->sentence_embedding(key), 1);
  const auto best = topk(scores, 1).indices;
  int right = 0;
  for (int64_t row = 0; row < 16; ++row) {
    right += best.values<int64_t>()[static_cast<size_t>(row)] == row ? 1 : 0;
  }
  EXPECT_GE(right, 15);
}

TEST(Bert, KeepsAnUntiedHeadAndRefusesWhatItCannotCompute) {
  BertConfig c = tiny();
  c.tied = false;
  c.activation = "relu";
  c.padding_id = -1;
  const TemporaryFolder folder;
  const auto model = made(c);
  save_bert(*model, folder.path(), R"({"my_key": 1})");
  const PretrainedBert loaded = load_bert(folder.path());
  EXPECT_TRUE(loaded.model->config() == c);
  EXPECT_TRUE(same_bits(loaded.model->logits(some_ids()), model->logits(some_ids())));
  EXPECT_NE(loaded.config.find("my_key"), std::string::npos);
  write_file(folder / "config.json", R"({"model_type": "bert", "is_decoder": true})");
  expect_error([&] { load_bert(folder.path()); }, "'is_decoder' is on");
  write_file(folder / "config.json",
             R"({"model_type": "bert", "position_embedding_type": "relative_key"})");
  expect_error([&] { load_bert(folder.path()); }, "position_embedding_type: relative_key");
  write_file(folder / "config.json", R"({"model_type": "gpt2"})");
  expect_error([&] { load_bert(folder.path()); }, "model_type is 'gpt2', not bert");
  c.heads = 3;
  expect_error([&] { Bert bad(c); },
               "bert: width must be a multiple of heads: width is 16, heads is 3");
  expect_error(
      [&] {
        model->logits(zeros({1, 13}, DType::i64));
      },
      "bert: the sequence is longer than the learned positions: 13 tokens, context 12");
}

}  // namespace
}  // namespace ingot::testing
