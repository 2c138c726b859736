// What rewards teach: properties of advantages, estimators and clipped losses that hold for any
// numbers. Their values are compared with another program's in loss_oracle_test.cpp.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "ingot/autograd/backward.h"
#include "ingot/autograd/record.h"
#include "ingot/ops/elementwise.h"
#include "ingot/ops/reduce.h"
#include "ingot/ops/shape.h"
#include "ingot/posttrain/advantages.h"
#include "ingot/posttrain/ewc.h"
#include "ingot/posttrain/grpo.h"
#include "ingot/posttrain/reinforce.h"
#include "ingot/tensor/copy.h"
#include "ingot/tensor/factories.h"
#include "tests/support/op_case.h"

namespace ingot::testing {
namespace {

constexpr int64_t episodes = 3, longest = 6;

// Answers of 6, 4 and 1 tokens.
Tensor some_mask() {
  return tensor_of<double>({1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 1, 0, 0, 0, 0, 0},
                           {episodes, longest});
}

Tensor leaf_of(const Tensor& x) {
  Tensor leaf = copy_of(x);
  return require_grad(leaf);
}

// Σ_i (γ λ)ⁱ δ_{t+i} of each token of an answer from the formula, every sum anew.
Tensor advantages_by_sums(const Tensor& rewards, const Tensor& values, const Tensor& mask,
                          double gamma, double lambda) {
  Tensor out = zeros({episodes, longest}, DType::f64);
  const std::span<const double> r = rewards.values<double>(), v = values.values<double>(),
                                m = mask.values<double>();
  const std::span<double> a = out.mutable_values<double>();
  for (int64_t b = 0; b < episodes; ++b) {
    int64_t length = 0;
    while (length < longest && m[b * longest + length] != 0) {
      ++length;
    }
    for (int64_t t = 0; t < length; ++t) {
      for (int64_t s = t; s < length; ++s) {
        const double next = s + 1 < length ? v[b * longest + s + 1] : 0;
        const double delta = r[b * longest + s] + gamma * next - v[b * longest + s];
        a[b * longest + t] += std::pow(gamma * lambda, static_cast<double>(s - t)) * delta;
      }
    }
  }
  return out;
}

TEST(AdvantageEstimation, IsTheSumOfTheFormulaBetweenOneStepAndTheWholeReturn) {
  const Tensor rewards = random_tensor({episodes, longest}, 1),
               values = random_tensor({episodes, longest}, 2);
  const Tensor mask = some_mask();
  for (const double lambda : {0.0, 0.5, 0.95, 1.0}) {
    const Advantages found = gae(rewards, values, mask, 0.9, lambda);
    EXPECT_LT(difference(found.advantages, advantages_by_sums(rewards, values, mask, 0.9, lambda)),
              1e-12)
        << "lambda " << lambda;
    EXPECT_LT(difference(found.returns, (found.advantages + values) * mask), 1e-12);
  }
  // λ = 1: the values cancel, and what is left is the return less the value.
  const Tensor returns = gae(rewards, values, mask, 0.9, 1).returns;
  EXPECT_LT(difference(returns,
                       gae(rewards, zeros({episodes, longest}, DType::f64), mask, 0.9, 1).returns),
            1e-12);
}

TEST(AdvantageEstimation, IsWhitenedToMeanZeroAndDeviationOneOverTheTokensThatCount) {
  const Tensor mask = some_mask();
  const Tensor x = whitened(random_tensor({episodes, longest}, 3, 5) + 7, mask);
  const double n = sum(mask).item();
  EXPECT_NEAR(sum(x * mask).item() / n, 0, 1e-9);
  EXPECT_NEAR(sum(square(x) * mask).item() / (n - 1), 1, 1e-9);
  EXPECT_EQ(sum(abs(x) * (1 - mask)).item(), 0);
  EXPECT_THROW(whitened(x, zeros({episodes, longest}, DType::f64)), Error);
}

TEST(GroupAdvantages, AreExactlyZeroWhereAllRewardsAreEqual) {
  // The mean of three times 0.1 is not 0.1 in f32.
  for (const double reward : {0.1, 0.7, 1e4 + 0.3}) {
    const Tensor same = full({2, 3}, reward, DType::f32);
    EXPECT_EQ(sum(abs(normalized_advantages(same, 1e-8))).item(), 0) << reward;
    EXPECT_EQ(sum(abs(centered_advantages(same))).item(), 0) << reward;
    EXPECT_EQ(sum(abs(leave_one_out_advantages(same))).item(), 0) << reward;
  }
}

TEST(GroupAdvantages, LeaveOneOutIsTheRewardLessTheMeanOfTheOthers) {
  const Tensor rewards = tensor_of<double>({1, 2, 6, 0, 0, 3}, {2, 3});
  const Tensor expected = tensor_of<double>({-3, -1.5, 4.5, -1.5, -1.5, 3}, {2, 3});
  EXPECT_LT(difference(leave_one_out_advantages(rewards), expected), 1e-12);
  EXPECT_THROW(leave_one_out_advantages(zeros({4, 1}, DType::f64)), Error);
}

TEST(KlEstimators, K1AndK3AverageToTheDivergenceAndK3IsNeverNegative) {
  // Three tokens: the average over what the policy draws is a sum.
  const Tensor p = tensor_of<double>({0.5, 0.3, 0.2}, {3});
  const Tensor q = tensor_of<double>({0.1, 0.6, 0.3}, {3});
  const double exact = sum(p * (log(p) - log(q))).item();
  const auto average = [&](KlEstimator kind) {
    return sum(p * kl_estimates(log(p), log(q), kind)).item();
  };
  EXPECT_NEAR(average(KlEstimator::k1), exact, 1e-12);
  EXPECT_NEAR(average(KlEstimator::k3), exact, 1e-12);
  EXPECT_GT(std::abs(average(KlEstimator::k2) - exact), 1e-3);  // it is biased
  const Tensor k3 = kl_estimates(log(p), log(q), KlEstimator::k3);
  for (const double x : k3.values<double>()) {
    EXPECT_GE(x, 0);
  }
}

TEST(KlEstimators, OnlyK2HasOnAverageTheGradientOfTheDivergence) {
  // Of softmax(z) from q; the draw is without gradient, as when tokens are sampled.
  const Tensor q = tensor_of<double>({0.1, 0.6, 0.3}, {3});
  const auto gradient = [&](auto loss_of) {
    const Tensor z = leaf_of(tensor_of<double>({0.4, -0.2, 0.1}, {3}));
    const Tensor logps = z - logsumexp(z, 0);
    backward(loss_of(logps));
    return grad(z);
  };
  const Tensor exact =
      gradient([&](const Tensor& logps) { return sum(exp(logps) * (logps - log(q))); });
  const auto estimated = [&](KlEstimator kind) {
    return gradient([&](const Tensor& logps) {
      return sum(detach(exp(logps)) * kl_estimates(logps, log(q), kind));
    });
  };
  EXPECT_LT(difference(estimated(KlEstimator::k2), exact), 1e-12);
  EXPECT_LT(difference(estimated(KlEstimator::k1), zeros({3}, DType::f64)), 1e-12);
  EXPECT_GT(difference(estimated(KlEstimator::k3), exact), 1e-3);
}

TEST(ClippedPolicy, IsReinforceWithoutClippingAtTheWeightsThatWroteTheAnswers) {
  const Tensor logps = random_tensor({episodes, longest}, 4), mask = some_mask();
  const Tensor advantages = tensor_of<double>({0.5, -1.5, 2}, {episodes});
  const Tensor ones = full({episodes, longest}, 1, DType::f64);
  const Tensor plain = leaf_of(logps);
  backward(weighted_reinforce_loss(plain, ones, mask, advantages));
  GrpoConfig config;
  const Tensor x = leaf_of(logps);
  const GrpoLoss found = grpo_loss(x, logps, {}, advantages, mask, config);
  backward(found.loss);
  EXPECT_EQ(found.clip_fraction.item(), 0);
  EXPECT_LT(difference(grad(x), grad(plain)), 1e-12);
}

TEST(ClippedPolicy, HasNoGradientPastTheRangeInTheDirectionOfTheAdvantage) {
  const Tensor advantages = tensor_of<double>({1, 1, -1, -1, -1}, {1, 5});
  const Tensor ratios = tensor_of<double>({1.5, 0.5, 0.5, 1.5, 9}, {1, 5});
  const Tensor x = leaf_of(log(ratios));
  const ClippedLosses found = clipped_losses(x, advantages, {0.2, 0.3, 3});
  backward(sum(found.losses));
  // 1.5 is clipped to 1.3; −3 A bounds what a ratio of 9 costs.
  EXPECT_LT(difference(detach(found.losses), tensor_of<double>({-1.3, -0.5, 0.8, 1.5, 3}, {1, 5})),
            1e-12);
  EXPECT_LT(difference(grad(x), tensor_of<double>({0, -0.5, 0, 1.5, 0}, {1, 5})), 1e-12);
  EXPECT_LT(difference(found.clipped, tensor_of<double>({1, 0, 1, 0, 0}, {1, 5})), 1e-12);
  EXPECT_THROW(clipped_losses(x, advantages, {0.2, 0.2, 0.5}), Error);
}

TEST(GrpoLoss, WeighsLengthsAsItIsAsked) {
  // Every token costs 1: means are 1 however they are taken, the constant's share is 11 of 3 · 8.
  const Tensor x = full({episodes, longest}, 1, DType::f64), mask = some_mask();
  EXPECT_NEAR(mean_of_tokens(x, mask).item(), 1, 1e-12);
  EXPECT_NEAR(mean_of_tokens(x, mask, {"sequence_mean", 0}).item(), 1, 1e-12);
  EXPECT_NEAR(mean_of_tokens(x, mask, {"constant", 8}).item(), 11.0 / 24, 1e-12);
  EXPECT_EQ(mean_of_tokens(x, zeros({episodes, longest}, DType::f64)).item(), 0);
  EXPECT_THROW(mean_of_tokens(x, mask, {"constant", 0}), Error);
  EXPECT_THROW(mean_of_tokens(x, mask, {"tokens", 0}), Error);
}

TEST(ImportanceWeights, AreOneWhereBothProgramsAgreeAndNeverAboveTheCap) {
  const Tensor logps = random_tensor({episodes, longest}, 5), mask = some_mask();
  for (const WeightLevel level : {WeightLevel::token, WeightLevel::sequence}) {
    EXPECT_LT(difference(importance_weights(logps, logps, mask, 2, level), mask), 1e-12);
    const Tensor capped = importance_weights(logps, logps - 5, mask, 2, level);
    EXPECT_LT(difference(capped, mask * 2), 1e-12);
  }
}

TEST(ElasticWeights, CostNothingWhereTheyWereAndPullBackByTheirFisherInformation) {
  const Tensor old = random_tensor({4}, 6), fisher = tensor_of<double>({0, 1, 2, 3}, {4});
  const Tensor still = leaf_of(old);
  const Tensor penalty = ewc_penalty({still}, {old}, {fisher}, 10);
  backward(penalty);
  EXPECT_EQ(penalty.item(), 0);
  EXPECT_EQ(sum(abs(grad(still))).item(), 0);
  const Tensor moved = leaf_of(old + 0.5);
  backward(ewc_penalty({moved}, {old}, {fisher}, 10));
  EXPECT_LT(difference(grad(moved), fisher * 5), 1e-12);  // λ F (θ − θ*)
  EXPECT_THROW(ewc_penalty({moved}, {}, {fisher}, 10), Error);
}

}  // namespace
}  // namespace ingot::testing
