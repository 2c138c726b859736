// What the papers of rules beyond SGD and Adam promise.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "ingot/ops/decompositions.h"
#include "ingot/ops/elementwise.h"
#include "ingot/ops/matmul.h"
#include "ingot/ops/reduce.h"
#include "ingot/optim/direction.h"
#include "ingot/optim/newton_schulz.h"
#include "ingot/optim/table.h"
#include "ingot/tensor/layout.h"
#include "tests/optim/given.h"
#include "tests/support/message.h"

namespace ingot::testing {
namespace {

using ::testing::ElementsAre;

Tensor normal_matrix(int64_t rows, int64_t columns, uint64_t seed, DType dtype = DType::f64) {
  return normal({rows, columns}, 0, 1, {seed, 0, 1}, dtype);
}

// Of a matrix, largest first.
std::vector<double> singular_values(const Tensor& x) {
  const Tensor wide = converted(x, DType::f64);
  const Tensor gram = matmul(transposed(wide, 0, 1), wide);
  const Tensor q = symmetric_eigen(gram).vectors;
  return numbers(sqrt(sum(q * matmul(gram, q), 0)));
}

TEST(Muon, BringsSingularValuesAboveAHundredthNearOne) {
  // A matrix with the singular values 1, 0.7, 0.3, 0.1, 0.03, 0.02 over their norm, 1.27: the least
  // is 0.016 of it.
  const Tensor u = qr(normal_matrix(6, 6, 1)).q;
  const Tensor v = qr(normal_matrix(6, 6, 2)).q;
  const Tensor s = tensor_of(std::vector<double>{1, 0.7, 0.3, 0.1, 0.03, 0.02}, {6});
  const Tensor g = matmul(u * s, transposed(v, 0, 1));
  for (const DType dtype : {DType::f64, DType::f32, DType::bf16}) {
    const auto values = singular_values(orthogonalised(g, {}, dtype));
    // bf16 adds its rounding: 2⁻⁸ of the largest.
    const double room = dtype == DType::bf16 ? 0.02 : 0;
    EXPECT_LE(values.front(), 1.21 + room) << name(dtype);
    EXPECT_GE(values.back(), 0.68 - room) << name(dtype);
  }
}

TEST(Muon, TakesHiddenMatricesAndLeavesTheOthersToAdamW) {
  const TensorDict parameters =
      dict({{"embedding.weight", parameter({1, 2, 3, 4}, {2, 2}, DType::f32)},
            {"layers.0.w", parameter({1, 2, 3, 4}, {2, 2}, DType::f32)},
            {"layers.0.b", parameter({1, 2}, {2}, DType::f32)}});
  const TensorDict state = Optimizer(parameters, make_rule(MuonConfig{})).state();
  EXPECT_TRUE(state.contains("muon.momentum/layers.0.w"));
  EXPECT_FALSE(state.contains("muon.v/layers.0.w"));
  EXPECT_TRUE(state.contains("muon.v/embedding.weight"));
  EXPECT_TRUE(state.contains("muon.v/layers.0.b"));
}

TEST(Muon, HasTheUpdateSizeOfAdamWAtTheMoonshotScale) {
  const Tensor p = copy_of(zeros({48, 96}, DType::f32));
  Tensor leaf = p;
  Optimizer optimizer(dict({{"w", require_grad(leaf)}}), make_rule(MuonConfig{}));
  grad(leaf) = normal_matrix(48, 96, 3, DType::f32);
  optimizer.step(1);
  EXPECT_NEAR(root_mean_square(leaf), 0.2, 0.04);
}

TEST(Lion, MovesEveryCoordinateByTheRateInHalfOfAdamsState) {
  const Tensor p = parameter({1, 1, 1, 1}, {4}, DType::f32);
  Optimizer optimizer(dict({{"p", p}}), make_rule(LionConfig{}));
  give(p, {1e-6, -3, 1e4, 0});
  optimizer.step(0.25);
  EXPECT_THAT(numbers(p), ElementsAre(0.75, 1.25, 0.75, 1));
  EXPECT_EQ(optimizer.state_bytes_per_parameter(), 4);
}

TEST(Adafactor, IsExactWhereTheSquaresHaveRankOneAndKeepsRowsAndColumns) {
  const Tensor row = tensor_of(std::vector<double>{1, 2, 3}, {3, 1});
  const Tensor column = tensor_of(std::vector<double>{0.5, 4, 1, 2}, {1, 4});
  Tensor p = zeros({3, 4}, DType::f64);
  Optimizer optimizer(dict({{"p", require_grad(p)}}), make_rule(AdafactorConfig{}));
  grad(p) = row * column;
  optimizer.step(0.5);
  for (const double moved : numbers(p)) {
    EXPECT_NEAR(moved, -0.5, 1e-6);  // g / √(g²)
  }
  EXPECT_EQ(optimizer.state_bytes(), (3 + 4) * 8);
}

TEST(Adafactor, TreatsMoreDimensionsAsABatchOfMatrices) {
  Tensor stacked = zeros({2, 3, 4}, DType::f64);
  Tensor single = zeros({3, 4}, DType::f64);
  const AdafactorConfig config{.clip_threshold = 1e9};
  Optimizer both(dict({{"p", require_grad(stacked)}}), make_rule(config));
  Optimizer one(dict({{"p", require_grad(single)}}), make_rule(config));
  grad(stacked) = normal({2, 3, 4}, 0, 1, {5, 0, 1}, DType::f64);
  grad(single) = copy_of(reshaped(sliced(grad(stacked), 0, 1, 2), {3, 4}));
  both.step(0.1);
  one.step(0.1);
  const auto last = numbers(reshaped(sliced(stacked, 0, 1, 2), {3, 4}));
  for (size_t i = 0; i < last.size(); ++i) {
    EXPECT_NEAR(last[i], numbers(single)[i], 1e-12);
  }
}

TEST(Shampoo, RootsTimesTheStatisticsAreTheIdentity) {
  const Tensor g = normal_matrix(8, 8, 4);
  const Tensor statistics = matmul(g, transposed(g, 0, 1));
  const Tensor x = symmetric_power(statistics, 1e-6, -0.25);
  const Tensor square_of_x = matmul(x, x);
  const auto product = numbers(matmul(matmul(square_of_x, square_of_x), statistics));
  for (size_t i = 0; i < product.size(); ++i) {
    EXPECT_NEAR(product[i], i % 9 == 0 ? 1 : 0, 1e-3);
  }
}

TEST(Lamb, MovesEachTensorByTheRateRelativeToItsNorm) {
  const Tensor small = parameter({0.01, 0.02}, {1, 2}, DType::f64);
  const Tensor large = parameter({100, -300}, {1, 2}, DType::f64);
  Optimizer optimizer(dict({{"a", small}, {"b", large}}), make_rule(LambConfig{}));
  for (const Tensor& p : {small, large}) {
    const Tensor before = copy_of(p);
    give(p, {0.3, 7});
    optimizer.step(0.01);
    EXPECT_NEAR(frobenius_norm(p - before) / frobenius_norm(before), 0.01, 1e-9);
  }
}

TEST(Lars, MovesAZeroTensorToo) {
  for (const RuleConfig& config : std::vector<RuleConfig>{LarsConfig{}, LarcConfig{}}) {
    const Tensor p = parameter({0, 0}, {1, 2}, DType::f64);
    Optimizer optimizer(dict({{"p", p}}),
                        std::visit([](const auto& any) { return make_rule(any); }, config));
    give(p, {1, -1});
    optimizer.step(0.1);
    EXPECT_THAT(numbers(p), ElementsAre(-0.1, 0.1));
  }
}

TEST(Sophia, NeverMovesACoordinateFurtherThanTheRate) {
  const Tensor p = parameter({0, 0, 0, 0}, {4}, DType::f64);
  Optimizer optimizer(dict({{"p", p}}),
                      make_rule(SophiaConfig{.beta1 = 0, .gamma = 1, .every = 2}));
  EXPECT_TRUE(optimizer.curvature_due());
  optimizer.observe_curvature(
      dict({{"p", tensor_of(std::vector<double>{100, 400, -100, 0}, {4})}}));
  give(p, {2, 1e6, 0.5, -1e-3});  // h = 0.01 of the estimates: 1, 4, −1, 0
  optimizer.step(0.1);
  EXPECT_THAT(numbers(p), ElementsAre(-0.1, -0.1, -0.1, 0.1));
  EXPECT_FALSE(optimizer.curvature_due());
  give(p, {0.5, 1, 0, 0});
  optimizer.step(0.1);
  EXPECT_NEAR(numbers(p)[0], -0.15, 1e-12);   // 0.5 / 1
  EXPECT_NEAR(numbers(p)[1], -0.125, 1e-12);  // 1 / 4
  EXPECT_TRUE(optimizer.curvature_due());
}

TEST(AdamW8bit, KeepsAQuarterOfTheStateAndFollowsAdamW) {
  Tensor a = normal({64, 128}, 0, 1, {6, 0, 1}, DType::f32);
  Tensor b = copy_of(a);
  const Tensor start = copy_of(a);
  Optimizer coded(dict({{"p", require_grad(a)}}), make_rule(AdamW8bitConfig{}));
  Optimizer full(dict({{"p", require_grad(b)}}), make_rule(AdamWConfig{}));
  EXPECT_NEAR(coded.state_bytes_per_parameter(), 2 + 2 * 4.0 / 256, 1e-9);
  for (uint64_t t = 0; t < 20; ++t) {
    const Tensor g = normal({64, 128}, 0.1, 1, {7, t, 1}, DType::f32);
    grad(a) = g;
    grad(b) = g;
    coded.step(0.01);
    full.step(0.01);
  }
  // Measured 0.02 of the way.
  EXPECT_LT(frobenius_norm(a - b), 0.05 * frobenius_norm(b - start));
}

TEST(Ema, FollowsItsClosedForm) {
  const Tensor p = parameter({3}, {1}, DType::f64);
  Optimizer optimizer(dict({{"p", p}}), with_ema(make_rule(SgdConfig{}), EmaConfig{.decay = 0.9}));
  double expected = 3 * std::pow(0.9, 30);
  for (int t = 1; t <= 30; ++t) {
    give(p, std::sin(t));
    optimizer.step(0.1);
    expected += 0.1 * std::pow(0.9, 30 - t) * numbers(p)[0];
  }
  const EvaluatedWeights shown(optimizer);
  EXPECT_NEAR(numbers(p)[0], expected, 1e-12);
}

TEST(Adafactor, RefusesSettingsThatContradictEachOther) {
  EXPECT_EQ(message_of(ErrorKind::config, [] { make_rule(AdafactorConfig{.warmup_init = true}); }),
            "adafactor: warmup_init needs relative_step: relative_step is false");
  EXPECT_THAT(message_of(ErrorKind::config,
                         [] { make_rule(AdafactorConfig{.form = "torch", .beta1 = 0.9}); }),
              ::testing::HasSubstr("the form torch has neither beta1"));
}

}  // namespace
}  // namespace ingot::testing
