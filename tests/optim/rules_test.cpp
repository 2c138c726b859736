// What the papers promise of each rule.
#include <gtest/gtest.h>

#include <cmath>

#include "ingot/optim/table.h"
#include "tests/optim/given.h"
#include "tests/support/message.h"

namespace ingot::testing {
namespace {

double largest(const std::vector<double>& values) {
  double most = 0;
  for (const double value : values) {
    most = std::max(most, std::abs(value));
  }
  return most;
}

struct Descent {
  std::vector<double> x;
  int64_t steps = 0;
};

// Minimises ½ Σ λ_i x_i² from x = 1 with full gradients, until max |x| ≤ error or `most` steps.
Descent descend(const std::vector<double>& curvature, const SgdConfig& config, double rate,
                int64_t most, double error = 0) {
  const auto count = static_cast<int64_t>(curvature.size());
  const Tensor x = parameter(std::vector<double>(curvature.size(), 1.0), {count}, DType::f64);
  Optimizer optimizer(dict({{"x", x}}), make_rule(config));
  Descent run{numbers(x)};
  while (run.steps < most && largest(run.x) > error) {
    for (size_t i = 0; i < curvature.size(); ++i) {
      run.x[i] *= curvature[i];
    }
    give(x, run.x);
    optimizer.step(rate);
    run.x = numbers(x);
    ++run.steps;
  }
  return run;
}

TEST(GradientDescent, ContractsEachComponentByOneMinusRateTimesCurvature) {
  const std::vector<double> curvature = {0.1, 1, 4};
  const auto x = descend(curvature, {}, 0.3, 7).x;
  for (size_t i = 0; i < x.size(); ++i) {
    EXPECT_NEAR(x[i], std::pow(1 - 0.3 * curvature[i], 7), 1e-12);
  }
}

TEST(GradientDescent, ConvergesBelowTwoOverTheLargestCurvatureAndDivergesAbove) {
  EXPECT_LT(largest(descend({0.5, 4}, {}, 0.49, 2000).x), 1e-6);
  EXPECT_GT(largest(descend({0.5, 4}, {}, 0.51, 2000).x), 1e6);
}

TEST(Momentum, NeedsAFifthOfTheStepsAtConditionNumberThousand) {
  const std::vector<double> curvature = {1, 10, 100, 1000};
  // Polyak's optimal coefficients for curvature in [1, 1000].
  const double root = std::sqrt(1000.0);
  const double momentum = std::pow((root - 1) / (root + 1), 2);
  const double rate = 4 / std::pow(root + 1, 2);
  const int64_t plain = descend(curvature, {}, 2.0 / 1001, 20000, 1e-6).steps;
  const int64_t heavy = descend(curvature, {.momentum = momentum}, rate, 20000, 1e-6).steps;
  const int64_t nesterov =
      descend(curvature, {.momentum = (root - 1) / (root + 1), .nesterov = true}, 1e-3, 20000, 1e-6)
          .steps;
  EXPECT_GE(plain, 5 * heavy) << plain << " against " << heavy;
  EXPECT_GE(plain, 5 * nesterov) << plain << " against " << nesterov;
}

TEST(Sgd, KeepsNoStateWithoutMomentumAndOneTensorWithIt) {
  const Tensor p = parameter(std::vector<double>(12), {3, 4}, DType::f32);
  const TensorDict parameters = dict({{"p", p}});
  EXPECT_EQ(Optimizer(parameters, make_rule(SgdConfig{})).state_bytes(), 0);
  EXPECT_EQ(Optimizer(parameters, make_rule(SgdConfig{.momentum = 0.9})).state_bytes(), 48);
}

TEST(Sgd, DecaysTheSameDecoupledOrInTheGradient) {
  const std::vector<double> start = {1, -2, 3, 0.5};
  const Tensor a = parameter(start, {2, 2}, DType::f64);
  const Tensor b = parameter(start, {2, 2}, DType::f64);
  Optimizer in_gradient(dict({{"p", a}}), make_rule(SgdConfig{.weight_decay = 0.1}));
  Optimizer decoupled(dict({{"p", b}}),
                      make_rule(SgdConfig{.weight_decay = 0.1, .decoupled = true}));
  for (int t = 0; t < 20; ++t) {
    give(a, {0.3, -0.1, t * 0.01, 1});
    give(b, {0.3, -0.1, t * 0.01, 1});
    in_gradient.step(0.05);
    decoupled.step(0.05);
  }
  for (size_t i = 0; i < start.size(); ++i) {
    EXPECT_NEAR(numbers(a)[i], numbers(b)[i], 1e-12);
  }
}

TEST(Adam, DecaysDifferentlyDecoupledAndInTheGradient) {
  const Tensor a = parameter({1, -2, 3, 0.5}, {2, 2}, DType::f64);
  const Tensor b = parameter({1, -2, 3, 0.5}, {2, 2}, DType::f64);
  Optimizer adam(dict({{"p", a}}), make_rule(AdamConfig{.weight_decay = 0.1}));
  Optimizer adamw(dict({{"p", b}}), make_rule(AdamWConfig{.beta2 = 0.999, .weight_decay = 0.1}));
  for (int t = 0; t < 10; ++t) {
    give(a, {0.3, -0.1, 0.01, 1});
    give(b, {0.3, -0.1, 0.01, 1});
    adam.step(0.05);
    adamw.step(0.05);
  }
  EXPECT_GT(std::abs(numbers(a)[2] - numbers(b)[2]), 1e-3);
}

TEST(Adam, FirstStepHasTheLengthOfTheLearningRate) {
  const Tensor p = parameter({0, 0, 0, 0}, {4}, DType::f64);
  Optimizer optimizer(dict({{"p", p}}), make_rule(AdamConfig{.eps = 1e-30}));
  give(p, {1e-6, -3, 1e4, 0.5});
  optimizer.step(0.01);
  const auto moved = numbers(p);
  EXPECT_NEAR(moved[0], -0.01, 1e-12);
  EXPECT_NEAR(moved[1], 0.01, 1e-12);
  EXPECT_NEAR(moved[2], -0.01, 1e-12);
  EXPECT_NEAR(moved[3], -0.01, 1e-12);
}

TEST(Adam, WithoutBiasCorrectionTheFirstStepIsThreeTimesAsLong) {
  const Tensor p = parameter({0, 0}, {2}, DType::f64);
  Optimizer optimizer(dict({{"p", p}}),
                      make_rule(AdamConfig{.eps = 1e-30, .bias_correction = false}));
  give(p, {2, -5});
  optimizer.step(0.01);
  // (1−0.9) / √(1−0.999) = 3.1623
  EXPECT_NEAR(numbers(p)[0], -0.01 * 0.1 / std::sqrt(0.001), 1e-12);
  EXPECT_NEAR(numbers(p)[1] / 0.01, 3.1623, 1e-4);
}

TEST(Adam, CorrectedMomentsOfAConstantGradientAreTheGradientAndItsSquare) {
  const double g = 0.37;
  const Tensor p = parameter({1, 2}, {2}, DType::f64);
  Optimizer optimizer(dict({{"p", p}}), make_rule(AdamConfig{}));
  for (int t = 1; t <= 50; ++t) {
    give(p, g);
    optimizer.step(0.001);
    const TensorDict state = optimizer.state();
    EXPECT_NEAR(numbers(state.at("adam.m/p"))[0] / (1 - std::pow(0.9, t)), g, 1e-12);
    EXPECT_NEAR(numbers(state.at("adam.v/p"))[1] / (1 - std::pow(0.999, t)), g * g, 1e-12);
  }
}

TEST(Adam, KeepsTwoTensorsAParameterAndAmsgradThree) {
  const Tensor p = parameter(std::vector<double>(12), {3, 4}, DType::f32);
  const TensorDict parameters = dict({{"p", p}});
  EXPECT_EQ(Optimizer(parameters, make_rule(AdamConfig{})).state_bytes_per_parameter(), 8);
  EXPECT_EQ(Optimizer(parameters, make_rule(AdamConfig{.amsgrad = true})).state_bytes(), 144);
}

TEST(AdamW, WithZeroGradientsShrinksDecayedWeightsExactlyAndLeavesTheOthers) {
  const std::vector<double> start = {1.1, -2.3, 0.7, 5};
  const Tensor matrix = parameter(start, {2, 2}, DType::f32);
  const Tensor gain = parameter(start, {4}, DType::f32);
  Optimizer optimizer(dict({{"matrix", matrix}, {"gain", gain}}),
                      make_rule(AdamWConfig{.weight_decay = 0.1}));
  std::vector<float> expected(start.begin(), start.end());
  for (int t = 0; t < 25; ++t) {
    give(matrix, 0);
    give(gain, 0);
    optimizer.step(0.02);
    for (float& value : expected) {
      value *= static_cast<float>(1 - 0.02 * 0.1);
    }
  }
  for (size_t i = 0; i < start.size(); ++i) {
    EXPECT_EQ(matrix.values<float>()[i], expected[i]);
    EXPECT_EQ(gain.values<float>()[i], static_cast<float>(start[i]));
  }
}

// The kernels work on vectors of 4 to 16 lanes: every remainder must take the same arithmetic.
TEST(AdamW, TreatsEveryElementAlikeWhateverTheTensorsSize) {
  for (const int64_t size : {1, 3, 15, 16, 17, 33, 16385}) {
    const auto count = static_cast<size_t>(size);
    const Tensor p = parameter(std::vector<double>(count, 0.3), {size}, DType::f32);
    Optimizer optimizer(dict({{"p", p}}), make_rule(AdamWConfig{}), decay_all);
    for (int t = 0; t < 3; ++t) {
      give(p, 0.25);
      optimizer.step(0.01);
    }
    const std::vector<double> values = numbers(p);
    for (const double value : values) {
      ASSERT_EQ(value, values[0]) << "of " << size;
    }
  }
}

TEST(Rules, RefuseSettingsThatContradictEachOther) {
  EXPECT_EQ(message_of(ErrorKind::config, [] { make_rule(SgdConfig{.nesterov = true}); }),
            "sgd: nesterov needs momentum above 0 and no dampening: momentum is 0, dampening is 0");
}

}  // namespace
}  // namespace ingot::testing
