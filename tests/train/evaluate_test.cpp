#include "ingot/train/evaluate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "ingot/autograd/backward.h"
#include "tests/support/message.h"
#include "tests/support/op_case.h"
#include "tests/train/tiny.h"

namespace ingot::testing {
namespace {

using ::testing::HasSubstr;

Batch two_rows(int64_t index) { return tiny_batch(2 * index, 2); }

TEST(Evaluate, IsTheMeanOverAllTargetsHoweverTheyAreBatched) {
  const auto model = tiny_model();
  const Objective objective = tiny_objective(*model);
  const Evaluation pairs = evaluate(objective, 4, two_rows, *model->randomness());
  const Evaluation whole = evaluate(
      objective, 1, [](int64_t) { return tiny_batch(0, 8); }, *model->randomness());
  EXPECT_NEAR(pairs.loss, whole.loss, 1e-6);
  EXPECT_EQ(pairs.tokens, whole.tokens);
  const Loss direct = objective(tiny_batch(0, 8));
  EXPECT_DOUBLE_EQ(whole.loss, direct.sum.item() / direct.count);
  EXPECT_DOUBLE_EQ(whole.bits(), whole.loss / std::log(2.0));
  EXPECT_DOUBLE_EQ(whole.perplexity(), std::exp(whole.loss));
}

TEST(Evaluate, LeavesDropoutOutAndRecordsNothing) {
  const auto dropping = tiny_model(0.5);
  const auto plain = tiny_model();
  dropping->randomness()->training = true;
  bool recorded = true;
  const Evaluation found = evaluate(
      [&, inner = tiny_objective(*dropping)](const Batch& batch) {
        Loss loss = inner(batch);
        recorded = loss.sum.node() != nullptr;
        return loss;
      },
      2, two_rows, *dropping->randomness());
  EXPECT_FALSE(recorded);
  EXPECT_EQ(found.loss, evaluate(tiny_objective(*plain), 2, two_rows, *plain->randomness()).loss);
}

TEST(Evaluate, DoesNotChangeTheStepsAfterIt) {
  const auto losses = [](bool evaluating) {
    const auto model = tiny_model(0.1);
    Optimizer optimizer = make_optimizer({}, model->parameters());
    Training training = tiny_training(*model, optimizer, 3);
    TrainState state;
    std::vector<double> out;
    for (int64_t step = 0; step < 3; ++step) {
      out.push_back(train_step(state, training).loss);
      if (evaluating) {
        evaluate(training.objective, 2, two_rows, *model->randomness());
      }
    }
    return out;
  };
  EXPECT_EQ(losses(true), losses(false));
}

TEST(Evaluate, RefusesASetWithoutTargets) {
  const auto model = tiny_model();
  EXPECT_THAT(
      message_of(ErrorKind::config,
                 [&] { evaluate(tiny_objective(*model), 0, two_rows, *model->randomness()); }),
      HasSubstr("no target counts"));
}

TEST(Evaluate, RefusesALossThatIsNotFinite) {
  const auto model = tiny_model();
  Tensor weight = model->embedding.weight;
  weight.mutable_values<float>()[0] = std::nanf("");
  EXPECT_THAT(
      message_of(ErrorKind::numeric,
                 [&] { evaluate(tiny_objective(*model), 4, two_rows, *model->randomness()); }),
      HasSubstr("is nan"));
}

}  // namespace
}  // namespace ingot::testing
