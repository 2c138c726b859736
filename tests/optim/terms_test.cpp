// Rules against plain transcriptions over a hundred fixed gradients, and what they reach on small
// regressions.
#include <gtest/gtest.h>

#include <cmath>

#include "ingot/autograd/backward.h"
#include "ingot/ops/elementwise.h"
#include "ingot/ops/losses.h"
#include "ingot/ops/matmul.h"
#include "ingot/optim/table.h"
#include "tests/optim/given.h"

namespace ingot::testing {
namespace {

constexpr int64_t size = 37;
using Values = std::vector<double>;

// The gradient of step t, exact in f32.
Values gradient(int64_t t) {
  return numbers(normal({size}, 0, 1, {11, static_cast<uint64_t>(t), 0}, DType::f32));
}
Values start() { return numbers(uniform({size}, -0.5, 0.5, {12, 0, 0}, DType::f32)); }

// The parameter after a hundred of these gradients.
Values after_hundred(std::unique_ptr<const Rule> rule, double rate, DType dtype) {
  const Tensor p = parameter(start(), {size}, dtype);
  Optimizer optimizer(dict({{"p", p}}), std::move(rule));
  for (int64_t t = 1; t <= 100; ++t) {
    give(p, gradient(t));
    optimizer.step(rate);
  }
  return numbers(p);
}

void expect_near(const Values& got, const Values& expected, double tolerance) {
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_NEAR(got[i], expected[i], tolerance) << "element " << i;
  }
}

// Kingma & Ba 2014, arXiv:1412.6980, Algorithm 1.
Values adam_by_algorithm_1(double rate) {
  const double beta1 = 0.9, beta2 = 0.999, eps = 1e-8;
  Values theta = start(), m(size), v(size);
  for (int64_t t = 1; t <= 100; ++t) {
    const Values g = gradient(t);
    for (size_t i = 0; i < theta.size(); ++i) {
      m[i] = beta1 * m[i] + (1 - beta1) * g[i];
      v[i] = beta2 * v[i] + (1 - beta2) * g[i] * g[i];
      const double m_hat = m[i] / (1 - std::pow(beta1, t));
      const double v_hat = v[i] / (1 - std::pow(beta2, t));
      theta[i] -= rate * m_hat / (std::sqrt(v_hat) + eps);
    }
  }
  return theta;
}

TEST(Adam, FollowsAlgorithm1OverAHundredGradients) {
  const Values expected = adam_by_algorithm_1(1e-3);
  expect_near(after_hundred(make_rule(AdamConfig{}), 1e-3, DType::f64), expected, 1e-12);
  expect_near(after_hundred(make_rule(AdamConfig{}), 1e-3, DType::f32), expected, 1e-6);
}

// v ← μ v + g;  p ← p − lr·v, with Nesterov p ← p − lr·(g + μ v).
Values momentum_by_formula(double rate, bool nesterov) {
  Values p = start(), v(size);
  for (int64_t t = 1; t <= 100; ++t) {
    const Values g = gradient(t);
    for (size_t i = 0; i < p.size(); ++i) {
      v[i] = 0.9 * v[i] + g[i];
      p[i] -= rate * (nesterov ? g[i] + 0.9 * v[i] : v[i]);
    }
  }
  return p;
}

TEST(Momentum, FollowsItsFormulaOverAHundredGradients) {
  for (const bool nesterov : {false, true}) {
    const SgdConfig config{.momentum = 0.9, .nesterov = nesterov};
    const Values expected = momentum_by_formula(1e-3, nesterov);
    expect_near(after_hundred(make_rule(config), 1e-3, DType::f64), expected, 1e-12);
    expect_near(after_hundred(make_rule(config), 1e-3, DType::f32), expected, 1e-6);
  }
}

TEST(Sgd, SubtractsTheRateTimesTheGradientExactly) {
  // Multiples of 1/64 below 2^10: no step rounds.
  const Tensor p = parameter({1, -2, 0.5, 3}, {4}, DType::f32);
  Values expected = {1, -2, 0.5, 3};
  Optimizer optimizer(dict({{"p", p}}), make_rule(SgdConfig{}));
  for (int64_t t = 0; t < 100; ++t) {
    const Values g = {0.25 * static_cast<double>(t), -1.5, 0.125 * static_cast<double>(t % 7), 4};
    give(p, g);
    optimizer.step(0.125);
    for (size_t i = 0; i < g.size(); ++i) {
      expected[i] -= 0.125 * g[i];
    }
  }
  EXPECT_EQ(numbers(p), expected);
}

// y = X w + noise in two unknowns, solved by the normal equations.
struct LeastSquares {
  Values x, y;  // [N, 2], [N]
  double best[2] = {};
};

LeastSquares noisy_least_squares() {
  LeastSquares out;
  const int64_t N = 256;
  out.x = numbers(normal({N, 2}, 0, 1, {21, 0, 0}, DType::f64));
  const Values noise = numbers(normal({N}, 0, 0.5, {22, 0, 0}, DType::f64));
  double a = 0, b = 0, c = 0, d = 0, e = 0;  // XᵀX = [a b; b c], Xᵀy = [d e]
  for (size_t i = 0; i < noise.size(); ++i) {
    const double u = out.x[2 * i], v = out.x[2 * i + 1];
    out.y.push_back(1.5 * u - 0.7 * v + noise[i]);
    a += u * u, b += u * v, c += v * v, d += u * out.y[i], e += v * out.y[i];
  }
  out.best[0] = (c * d - b * e) / (a * c - b * b);
  out.best[1] = (a * e - b * d) / (a * c - b * b);
  return out;
}

// How far SGD on one random row a step ends from the solution.
double distance_after(const LeastSquares& problem, const std::function<double(int64_t)>& rate) {
  const Tensor w = parameter({0, 0}, {2}, DType::f64);
  Optimizer optimizer(dict({{"w", w}}), make_rule(SgdConfig{}));
  const Philox random({23, 0, 0});
  for (int64_t t = 0; t < 20000; ++t) {
    const size_t row = random.word(static_cast<uint64_t>(t)) % problem.y.size();
    const double u = problem.x[2 * row], v = problem.x[2 * row + 1];
    const Values now = numbers(w);
    const double error = u * now[0] + v * now[1] - problem.y[row];
    give(w, {error * u, error * v});
    optimizer.step(rate(t));
  }
  const Values end = numbers(w);
  return std::hypot(end[0] - problem.best[0], end[1] - problem.best[1]);
}

// Robbins & Monro 1951: Σ lr = ∞ and Σ lr² < ∞.
TEST(Sgd, SolvesNoisyLeastSquaresAtADecayedRate) {
  const LeastSquares problem = noisy_least_squares();
  const double decayed =
      distance_after(problem, [](int64_t t) { return 2 / (40 + static_cast<double>(t)); });
  EXPECT_LT(decayed, 0.02);
  EXPECT_GT(distance_after(problem, [](int64_t) { return 0.05; }), 2 * decayed);
}

// Validation loss of a fit of 40 weights to 20 noisy rows.
double validation_loss(double weight_decay) {
  const auto rows = [](uint64_t seed) { return normal({20, 40}, 0, 1, {seed, 0, 0}, DType::f64); };
  const Tensor truth = normal({40, 1}, 0, 0.3, {31, 0, 0}, DType::f64);
  const Tensor x = rows(32);
  const Tensor y = matmul(x, truth) + normal({20, 1}, 0, 0.3, {33, 0, 0}, DType::f64);
  Tensor w = normal({40, 1}, 0, 0.5, {34, 0, 0}, DType::f64);
  require_grad(w);
  Optimizer optimizer(dict({{"w", w}}), make_rule(SgdConfig{.weight_decay = weight_decay}));
  for (int t = 0; t < 800; ++t) {
    backward(mse(matmul(x, w), y, Reduction::mean));
    optimizer.step(0.05);
  }
  const Tensor others = rows(35);
  return mse(matmul(others, detach(w)), matmul(others, truth), Reduction::mean).item();
}

TEST(WeightDecay, ImprovesTheValidationLossOfAnOverParameterisedFit) {
  EXPECT_LT(validation_loss(0.1), 0.8 * validation_loss(0));
}

}  // namespace
}  // namespace ingot::testing
