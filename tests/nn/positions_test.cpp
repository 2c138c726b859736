#include "ingot/nn/positions.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "ingot/nn/rotary.h"
#include "ingot/tensor/factories.h"
#include "tests/support/op_case.h"

namespace ingot::testing {
namespace {

TEST(SinusoidalTable, FollowsTheFormula) {
  const Tensor table = nn::sinusoidal_table(arange(50, DType::i64), 16, DType::f32);
  ASSERT_EQ(table.shape(), (Shape{50, 16}));
  for (int64_t t = 0; t < 50; ++t) {
    for (int64_t i = 0; i < 8; ++i) {
      const double angle = static_cast<double>(t) / std::pow(10000.0, static_cast<double>(i) / 8);
      const auto at = static_cast<size_t>(16 * t + 2 * i);
      EXPECT_NEAR(table.values<float>()[at], std::sin(angle), 1e-6);
      EXPECT_NEAR(table.values<float>()[at + 1], std::cos(angle), 1e-6);
    }
  }
}

TEST(AlibiSlopes, AreThoseOfThePaper) {
  const Tensor eight = nn::alibi_slopes(8, cpu_device);
  for (size_t h = 0; h < 8; ++h) {
    EXPECT_FLOAT_EQ(eight.values<float>()[h], std::exp2(-static_cast<float>(h + 1)));
  }
  // 12 heads: those of 8, then the first, third, … of 16 (2^(−1/2) apart).
  const Tensor twelve = nn::alibi_slopes(12, cpu_device);
  EXPECT_FLOAT_EQ(twelve.values<float>()[7], std::exp2(-8.0F));
  EXPECT_FLOAT_EQ(twelve.values<float>()[8], std::exp2(-0.5F));
  EXPECT_FLOAT_EQ(twelve.values<float>()[11], std::exp2(-3.5F));
}

TEST(RotaryFrequencies, Llama3KeepsFastPairsAndDividesSlowOnes) {
  nn::RotaryConfig config;
  config.base = 500000;
  config.scaling = "llama3";
  config.factor = 8;
  config.original_context = 8192;
  const std::vector<double> f = nn::rotary_frequencies(config, 128, 131072, 10);
  for (size_t p = 0; p < 64; ++p) {
    const double plain = std::pow(500000.0, -static_cast<double>(p) / 64);
    const double wave = 2 * std::numbers::pi / plain;
    const double smooth = (8192 / wave - 1) / (4 - 1);
    const double expected = wave < 8192.0 / 4   ? plain
                            : wave > 8192.0 / 1 ? plain / 8
                                                : (1 - smooth) * plain / 8 + smooth * plain;
    EXPECT_NEAR(f[p], expected, 1e-15);
  }
}

TEST(RotaryFrequencies, LinearAndDynamicStretch) {
  nn::RotaryConfig config;
  config.factor = 4;
  config.scaling = "linear";
  EXPECT_DOUBLE_EQ(nn::rotary_frequencies(config, 8, 100, 50)[1], std::pow(10000.0, -0.25) / 4);
  config.scaling = "dynamic";
  EXPECT_DOUBLE_EQ(nn::rotary_frequencies(config, 8, 100, 100)[1], std::pow(10000.0, -0.25));
  const double base = 10000 * std::pow(4 * 1.5 - 3, 8.0 / 6);
  EXPECT_DOUBLE_EQ(nn::rotary_frequencies(config, 8, 100, 150)[1], std::pow(base, -0.25));
}

TEST(RotaryTables, ScaledOnesAgreeWithPlainOnesAtFactorOne) {
  nn::RotaryConfig config;
  const Tensor positions = arange(30, DType::i64);
  const RopeTables plain = nn::rotary_tables(config, positions, 16, 64, 30, DType::f64);
  config.scaling = "linear";
  const RopeTables scaled = nn::rotary_tables(config, positions, 16, 64, 30, DType::f64);
  EXPECT_LE(difference(scaled.cos, plain.cos), 1e-14);
  EXPECT_LE(difference(scaled.sin, plain.sin), 1e-14);
}

TEST(RotaryAmplitude, GrowsWithTheLogarithmUnderYarn) {
  nn::RotaryConfig config;
  EXPECT_EQ(nn::rotary_amplitude(config, 64), 1);
  config.scaling = "yarn";
  config.factor = 4;
  EXPECT_DOUBLE_EQ(nn::rotary_amplitude(config, 64), 0.1 * std::log(4.0) + 1);
  config.attention_factor = 1.25;
  EXPECT_EQ(nn::rotary_amplitude(config, 64), 1.25);
}

}  // namespace
}  // namespace ingot::testing
