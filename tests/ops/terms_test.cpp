// What the definitions of norms and similarities promise, beside the checks of their values.
#include <gtest/gtest.h>

#include <cmath>

#include "ingot/ops/elementwise.h"
#include "ingot/ops/losses.h"
#include "ingot/ops/norm.h"
#include "ingot/tensor/copy.h"
#include "ingot/tensor/factories.h"
#include "ingot/tensor/layout.h"
#include "tests/support/op_case.h"

namespace ingot::testing {
namespace {

Tensor floats(const Shape& shape, uint64_t seed, double mean = 0, double deviation = 1) {
  return normal(shape, mean, deviation, {seed, 0, 0}, DType::f32);
}

TEST(CosineSimilarity, IsOneMinusOneAndZeroForParallelAntiparallelAndOrthogonal) {
  const Tensor a = floats({8, 37}, 1);
  EXPECT_LE(difference(cosine_similarity(a, a * 3.0), full({8}, 1, DType::f64)), 1e-6);
  EXPECT_LE(difference(cosine_similarity(a, a * -0.2), full({8}, -1, DType::f64)), 1e-6);
  const Tensor u = tensor_of(std::vector<float>{1, 2, 3, 0}, {4});
  const Tensor v = tensor_of(std::vector<float>{3, 0, -1, 7}, {4});
  EXPECT_NEAR(cosine_similarity(u, v).item(), 0, 1e-6);
}

TEST(CosineSimilarity, DoesNotChangeWhenAnArgumentIsScaled) {
  const Tensor a = floats({8, 37}, 1);
  const Tensor b = floats({8, 37}, 2);
  const Tensor y = cosine_similarity(a, b);
  for (const double factor : {1e-3, 0.7, 1e4}) {
    EXPECT_LE(difference(cosine_similarity(a * factor, b), y), 1e-6);
    EXPECT_LE(difference(cosine_similarity(a, b * factor), y), 1e-6);
  }
}

TEST(KlDivergence, IsPositiveUnlessTheDistributionsAreEqual) {
  const Tensor p = normal({50, 11}, 0, 2, {3, 0, 0}, DType::f64);
  const Tensor q = normal({50, 11}, 0, 2, {4, 0, 0}, DType::f64);
  const Tensor near = p + normal({50, 11}, 0, 1e-3, {5, 0, 0}, DType::f64);
  for (const Tensor& kl : {kl_divergence(p, q), kl_divergence(q, p), kl_divergence(p, near)}) {
    for (const double value : kl.values<double>()) {
      EXPECT_GT(value, 0);
    }
  }
  // Logits that differ by a constant are the same distribution.
  EXPECT_LE(difference(kl_divergence(p, p + 2.5), zeros({50}, DType::f64)), 1e-14);
}

TEST(KlDivergence, MatchesASumInDoubleInBothDirections) {
  const Tensor p = floats({20, 11}, 3, 0, 2);
  const Tensor q = floats({20, 11}, 4, 0, 2);
  const auto direct = [](const Tensor& a, const Tensor& b, size_t row) {
    double za = 0, zb = 0, sum = 0;
    for (size_t v = 11 * row; v < 11 * row + 11; ++v) {
      za += std::exp(static_cast<double>(a.values<float>()[v]));
      zb += std::exp(static_cast<double>(b.values<float>()[v]));
    }
    for (size_t v = 11 * row; v < 11 * row + 11; ++v) {
      const double pa = std::exp(static_cast<double>(a.values<float>()[v])) / za;
      const double pb = std::exp(static_cast<double>(b.values<float>()[v])) / zb;
      sum += pa * std::log(pa / pb);
    }
    return sum;
  };
  const Tensor forward = kl_divergence(p, q);
  const Tensor reverse = kl_divergence(q, p);
  for (size_t row = 0; row < 20; ++row) {
    const double a = direct(p, q, row), b = direct(q, p, row);
    EXPECT_NEAR(static_cast<double>(forward.values<float>()[row]), a, 1e-6 * std::max(1.0, a));
    EXPECT_NEAR(static_cast<double>(reverse.values<float>()[row]), b, 1e-6 * std::max(1.0, b));
  }
}

TEST(LayerNorm, GivesEveryTokenMeanZeroAndVarianceOne) {
  const Tensor y = layer_norm(floats({6, 5, 70}, 1, 3, 4), {}, {}, 1e-8);
  const auto values = y.values<float>();
  for (size_t row = 0; row < values.size(); row += 70) {
    double mean = 0, square = 0;
    for (size_t i = row; i < row + 70; ++i) {
      const auto value = static_cast<double>(values[i]);
      mean += value / 70;
      square += value * value / 70;
    }
    EXPECT_NEAR(mean, 0, 1e-5);
    EXPECT_NEAR(square - mean * mean, 1, 1e-5);
  }
}

TEST(LayerNorm, OfAnExampleDoesNotDependOnTheOthers) {
  const Tensor x = floats({6, 70}, 1);
  const Tensor whole = layer_norm(x, floats({70}, 2), floats({70}, 3), 1e-5);
  for (int64_t row = 0; row < 6; ++row) {
    const Tensor alone =
        layer_norm(sliced(x, 0, row, row + 1, 1), floats({70}, 2), floats({70}, 3), 1e-5);
    EXPECT_TRUE(same_bits(alone, dense(sliced(whole, 0, row, row + 1, 1)))) << row;
  }
}

TEST(RmsNorm, IsTheInputOverItsRootMeanSquareTimesTheGain) {
  const Tensor x = floats({9, 70}, 1, 0.5, 3);
  const Tensor gain = floats({70}, 2, 1, 0.3);
  const Tensor y = rms_norm(x, gain, 1e-12);
  for (size_t row = 0; row < 9; ++row) {
    double square = 0;
    for (size_t i = 0; i < 70; ++i) {
      square += std::pow(static_cast<double>(x.values<float>()[70 * row + i]), 2) / 70;
    }
    for (size_t i = 0; i < 70; ++i) {
      const double expected = static_cast<double>(x.values<float>()[70 * row + i]) /
                              std::sqrt(square) * static_cast<double>(gain.values<float>()[i]);
      EXPECT_NEAR(static_cast<double>(y.values<float>()[70 * row + i]), expected,
                  1e-6 * std::max(1.0, std::abs(expected)));
    }
  }
}

}  // namespace
}  // namespace ingot::testing
