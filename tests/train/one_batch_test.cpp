#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "ingot/autograd/record.h"
#include "ingot/ops/elementwise.h"
#include "ingot/ops/reduce.h"
#include "tests/support/message.h"
#include "tests/train/tiny.h"

namespace ingot::testing {
namespace {

// Four rows whose next token follows from the row and the place.
Batch one_batch() {
  Batch batch = tiny_batch(0, 4);
  std::vector<int64_t> ids;
  std::vector<int64_t> labels;
  for (int64_t row = 0; row < 4; ++row) {
    for (int64_t t = 0; t < 16; ++t) {
      ids.push_back((7 * row + 3 * t + row * t) % 40);
      labels.push_back((7 * row + 3 * (t + 1) + row * (t + 1)) % 40);
    }
  }
  batch.ids = tensor_of(ids, {4, 16});
  batch.labels = tensor_of(labels, {4, 16});
  return batch;
}

TEST(Train, FitsOneBatchCompletely) {
  const auto model = tiny_model();
  Optimizer optimizer = make_optimizer({}, model->parameters());
  Training training = tiny_training(*model, optimizer, 300);
  training.batch = [](int64_t) { return one_batch(); };
  Reports reports;
  training.observers = {&reports};
  TrainState state;
  train(state, training);
  EXPECT_GT(reports.all.front().loss, 3);
  EXPECT_LT(reports.all.back().loss, 0.01);
}

// Counts the updates of each parameter, and changes none.
class Counting : public Rule {
 public:
  explicit Counting(std::map<const void*, int>& updates) : updates_(updates) {}
  std::string_view name() const override { return "counting"; }
  std::vector<Slot> slots(const Weight&) const override { return {}; }
  void update(Weight& p, const Tensor&, TensorList&, const Step&) const override {
    ++updates_[p.full.storage().get()];
  }

 private:
  std::map<const void*, int>& updates_;
};

TEST(TrainStep, TakesOneBatchAndUpdatesEveryParameterOnce) {
  for (const int64_t accumulate : {1, 2, 8}) {
    const auto model = tiny_model();
    std::map<const void*, int> updates;
    Optimizer optimizer(model->parameters(), std::make_unique<Counting>(updates));
    Training training = tiny_training(*model, optimizer, 1, accumulate);
    int64_t rows = 0;
    training.batch = [&, inner = training.batch](int64_t position) {
      const Batch batch = inner(position);
      EXPECT_EQ(position, rows);
      rows += batch.ids.size(0);
      return batch;
    };
    TrainState state;
    const StepReport report = train_step(state, training);
    EXPECT_EQ(rows, 8);
    EXPECT_EQ(state.step, 1);
    EXPECT_EQ(state.position, 8);
    // Row r ignores 3·(r mod 5) of its 16 labels: 0, 3, 6, 9, 12, 0, 3 and 6 of them.
    EXPECT_EQ(state.tokens, 8 * 16 - 39);
    EXPECT_EQ(report.tokens, 8 * 16 - 39);
    EXPECT_EQ(static_cast<int64_t>(updates.size()), model->parameters().size());
    EXPECT_TRUE(std::ranges::all_of(updates, [](const auto& entry) { return entry.second == 1; }));
  }
}

// Full-batch gradient descent on ½ Σ λ x² with λ up to 4, 500 steps at most.
double loss_after_descent(double rate) {
  const Tensor curvature = tensor_of(std::vector<float>{0.5, 4}, {2});
  TensorDict parameters;
  parameters.add("x", full({2}, 1, DType::f32));
  require_grad(parameters.at("x"));
  Optimizer optimizer(parameters, make_rule(SgdConfig{}));
  Randomness randomness;
  Training training;
  training.steps = 500;
  training.batch = [](int64_t) { return one_batch(); };
  training.learning_rate = [rate](int64_t) { return rate; };
  training.objective = [&](const Batch&) {
    const Tensor& x = optimizer.parameters().at("x");
    return Loss{.sum = sum(curvature * x * x) * 0.5, .count = 1, .metrics = {}};
  };
  training.optimizer = &optimizer;
  training.randomness = &randomness;
  Reports reports;
  training.observers = {&reports};
  TrainState state;
  train(state, training);
  return reports.all.back().loss;
}

TEST(Train, ReportsGradientDescentAboveTwoOverTheCurvatureAsDiverged) {
  EXPECT_LT(loss_after_descent(0.49), 1e-6);
  EXPECT_THAT(message_of(ErrorKind::numeric, [] { loss_after_descent(0.6); }),
              ::testing::HasSubstr("lower the learning rate"));
}

}  // namespace
}  // namespace ingot::testing
