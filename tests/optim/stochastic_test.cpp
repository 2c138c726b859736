#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "ingot/autograd/record.h"
#include "ingot/optim/table.h"
#include "ingot/tensor/copy.h"
#include "ingot/tensor/factories.h"
#include "tests/support/message.h"

namespace ingot::testing {
namespace {

struct Weights {
  Tensor p;
  Optimizer optimizer;

  Weights(const std::string& halves, const std::string& rule, uint64_t seed = 1)
      : p(full({4096}, 1, DType::bf16)), optimizer(made(p, halves, rule, seed)) {}

  static Optimizer made(Tensor& p, const std::string& halves, const std::string& rule,
                        uint64_t seed) {
    require_grad(p);
    TensorDict parameters;
    parameters.add("p", p);
    OptimizerConfig config;
    choose(config, rule);
    config.halves = halves;
    return make_optimizer(config, parameters, seed);
  }
  // One update with the gradient −1 for all.
  void step(double rate) {
    grad(p) = full({4096}, -1, DType::f32);
    optimizer.step(rate);
  }
  double mean() const {
    double sum = 0;
    const Tensor wide = converted(p, DType::f32);
    for (const float value : wide.values<float>()) {
      sum += value;
    }
    return sum / 4096;
  }
};

TEST(StochasticRounding, KeepsUpdatesThatRoundingToNearestLoses) {
  // 1 + 1e-4 rounds to 1 in bf16, whose spacing there is 2⁻⁷.
  Tensor nearest = full({1}, 1, DType::bf16);
  for (int i = 0; i < 1000; ++i) {
    nearest = converted(full({1}, nearest.item() + 1e-4, DType::f32), DType::bf16);
  }
  EXPECT_EQ(nearest.item(), 1);
  Weights stochastic("stochastic", "sgd"), master("master", "sgd");
  for (int i = 0; i < 1000; ++i) {
    stochastic.step(1e-4);
    master.step(1e-4);
  }
  EXPECT_NEAR(master.optimizer.masters().at("p").values<float>()[0], 1.1, 1e-4);
  // The sum of 1000 roundings: a deviation of √(1000 · 1e-4 · 2⁻⁷) = 0.028 a weight.
  EXPECT_NEAR(stochastic.mean(), 1.1, 3 * 0.028 / 64);
  EXPECT_EQ(stochastic.optimizer.state_bytes(), 0);
  EXPECT_EQ(master.optimizer.state_bytes(), 4 * 4096);
}

TEST(StochasticRounding, ContinuesBitForBit) {
  for (const char* rule : {"adamw", "schedule_free_adamw"}) {
    Weights whole("stochastic", rule), first("stochastic", rule), second("stochastic", rule);
    for (int i = 0; i < 6; ++i) {
      whole.step(1e-2);
    }
    for (int i = 0; i < 3; ++i) {
      first.step(1e-2);
    }
    copy_into(second.p, first.p);
    second.optimizer.load(first.optimizer.state());
    for (int i = 0; i < 3; ++i) {
      second.step(1e-2);
    }
    const auto bits = [](const Weights& w) { return converted(copy_of(w.p), DType::f32); };
    const Tensor a = bits(whole), b = bits(second);
    EXPECT_TRUE(
        std::equal(a.values<float>().begin(), a.values<float>().end(), b.values<float>().begin()))
        << rule;
    Weights other("stochastic", rule, 2);
    other.step(1e-2);
    Weights same("stochastic", rule, 1);
    same.step(1e-2);
    EXPECT_NE(other.mean(), same.mean());
  }
}

TEST(StochasticRounding, ShowsEvaluatedWeightsAndGivesBackTheTrainedOnes) {
  Weights weights("stochastic", "schedule_free_adamw");
  for (int i = 0; i < 5; ++i) {
    weights.step(1e-1);
  }
  const Tensor before = copy_of(weights.p);
  double shown = 0;
  {
    const EvaluatedWeights evaluated(weights.optimizer);
    shown = weights.mean();
  }
  const Tensor a = converted(before, DType::f32), b = converted(weights.p, DType::f32);
  EXPECT_TRUE(
      std::equal(a.values<float>().begin(), a.values<float>().end(), b.values<float>().begin()));
  EXPECT_NE(shown, weights.mean());
}

TEST(StochasticRounding, RefusesF16AndSharpness) {
  Tensor p = full({4}, 1, DType::f16);
  EXPECT_EQ(message_of(ErrorKind::dtype, [&] { Weights::made(p, "stochastic", "sgd", 1); }),
            "optimizer: 'p' is f16: only bf16 is rounded stochastically; keep masters");
  OptimizerConfig config;
  config.halves = "stochastic";
  config.sam.rho = 0.05;
  EXPECT_EQ(message_of(ErrorKind::config, [&] { make_optimizer(config, {}); }),
            "optim.halves: SAM moves weights that have masters: halves is stochastic, sam.rho is "
            "0.05; leave one of them out");
}

TEST(StochasticRounding, WhatIsNoNumberOrTheLargestStays) {
  Weights weights("stochastic", "sgd");
  for (const float value : {std::nanf(""), 3.38e38F, -3.38e38F}) {
    fill(weights.p, value);
    weights.step(0);
    const float after = converted(weights.p, DType::f32).values<float>()[7];
    EXPECT_TRUE(std::isnan(value)
                    ? std::isnan(after)
                    : after ==
                          converted(full({1}, value, DType::bf16), DType::f32).values<float>()[0])
        << value;
  }
}

}  // namespace
}  // namespace ingot::testing
