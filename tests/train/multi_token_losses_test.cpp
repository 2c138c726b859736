#include "ingot/train/multi_token_losses.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ingot/autograd/backward.h"
#include "ingot/autograd/grad_mode.h"
#include "ingot/ops/elementwise.h"
#include "tests/train/tiny.h"

namespace ingot::testing {
namespace {

using ::testing::ElementsAre;
constexpr int64_t none = ignored_label;

std::vector<int64_t> listed(const Tensor& x) {
  const auto values = x.values<int64_t>();
  return {values.begin(), values.end()};
}

TEST(MultiTokenLosses, LabelsAheadStayInsideRowsAndDocuments) {
  const Tensor labels = tensor_of(std::vector<int64_t>{1, 2, none, 4, 5, 6, 7, 8}, {2, 4});
  EXPECT_THAT(listed(labels_ahead(labels, {}, 1)), ElementsAre(2, none, 4, none, 6, 7, 8, none));
  EXPECT_THAT(listed(labels_ahead(labels, {}, 5)),
              ElementsAre(none, none, none, none, none, none, none, none));
  const Tensor documents = tensor_of(std::vector<int32_t>{0, 0, 0, 1, 0, 1, 1, 1}, {2, 4});
  EXPECT_THAT(listed(labels_ahead(labels, documents, 1)),
              ElementsAre(2, none, none, none, none, 7, 8, none));
}

// Rows of a walk in which a token decides all that follow: x -> 7 x + 3 modulo 31.
Batch walk(int64_t position, int64_t rows) {
  std::vector<int64_t> ids;
  std::vector<int64_t> labels;
  for (int64_t row = 0; row < rows; ++row) {
    int64_t x = (position * 13 + row * 5) % 31;
    for (int64_t t = 0; t < 12; ++t) {
      ids.push_back(x);
      x = (7 * x + 3) % 31;
      labels.push_back(x);
    }
  }
  return {tensor_of(ids, {rows, 12}), tensor_of(labels, {rows, 12}), {}};
}

Objective objective_of(const Decoder& model, double weight) {
  return [&model, weight](const Batch& batch) {
    std::vector<nn::Routed> routed;
    const Decoder::Ahead made = model.hidden_ahead(batch.ids, {}, routed);
    Loss loss;
    loss.sum = linear_cross_entropy(made.hidden, model.output_weight(), batch.labels);
    loss.count = static_cast<double>(batch.labels.elements());
    add_multi_token_losses(loss, made.further, model.output_weight(), batch, weight, {});
    return loss;
  };
}

// Found after 150 steps: below 0.02 in all.
TEST(MultiTokenLosses, EveryHeadLearnsTheTokenThatIsItsOwn) {
  for (const char* kind : {"sequential", "parallel"}) {
    DecoderConfig config = tiny_config();
    config.mtp = {2, kind};
    Decoder model(config);
    nn::initialise(model, {"normal", 0.2}, 3);
    model.require_gradients();
    Optimizer optimizer = make_optimizer({}, model.parameters());
    Training training = tiny_training(model, optimizer, 150);
    training.batch = [](int64_t position) { return walk(position, 8); };
    training.objective = objective_of(model, 1);
    TrainState state;
    train(state, training);
    const NoGrad quiet;
    const Batch batch = walk(1000, 4);
    const Loss found = objective_of(model, 1)(batch);
    EXPECT_LT(found.metrics.at("mtp_loss_1") / found.count, 0.1) << kind;
    EXPECT_LT(found.metrics.at("mtp_loss_2") / found.count, 0.1) << kind;
  }
}

TEST(MultiTokenLosses, AreWeighedAndSharedAmongTheHeads) {
  DecoderConfig config = tiny_config();
  config.mtp.depth = 2;
  Decoder model(config);
  nn::initialise(model, {"normal", 0.2}, 3);
  const NoGrad quiet;
  const Batch batch = walk(0, 2);
  const double alone = objective_of(model, 0)(batch).sum.item();
  const Loss loss = objective_of(model, 0.6)(batch);
  const double heads = loss.metrics.at("mtp_loss_1") + loss.metrics.at("mtp_loss_2");
  EXPECT_GT(heads, 2 * 20 * 2.0);  // about ln 40 of 22 and 20 tokens
  EXPECT_NEAR(loss.sum.item(), alone + 0.3 * heads, 1e-3);
  EXPECT_EQ(loss.count, 24);
}

}  // namespace
}  // namespace ingot::testing
