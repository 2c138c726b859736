#include "ingot/quant/product_rounding.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "ingot/autograd/backward.h"
#include "ingot/autograd/record.h"
#include "ingot/ops/elementwise.h"
#include "ingot/ops/reduce.h"
#include "ingot/quant/microscaling.h"
#include "ingot/tensor/copy.h"
#include "ingot/tensor/factories.h"
#include "tests/support/message.h"

namespace ingot::testing {
namespace {

using quant::Operand;
using quant::ProductFormat;

std::vector<ProductFormat> all_formats() {
  std::vector<ProductFormat> out;
  for (const std::string& name : quant::product_format_names()) {
    out.push_back(*quant::product_format_named(name));
  }
  return out;
}

double relative_error(const Tensor& x, const Tensor& y) {
  double error = 0, size = 0;
  for (size_t i = 0; i < x.values<float>().size(); ++i) {
    const double a = x.values<float>()[i];
    error += std::pow(a - static_cast<double>(y.values<float>()[i]), 2);
    size += a * a;
  }
  return std::sqrt(error / size);
}

TEST(ProductRounding, LosesWhatItsFractionBitsSay) {
  const Tensor x = normal({5, 200}, 0, 1, {1, 2, 3}, DType::f32);
  const auto error = [&](ProductFormat format, Operand operand) {
    return relative_error(x, quant::rounded_to(x, format, operand));
  };
  // A uniform error within half a spacing 2^(e − M): about 2^−M / √24 of the number.
  EXPECT_NEAR(error(ProductFormat::fp8, Operand::input), 0.0265, 0.005);   // measured: 0.0267
  EXPECT_NEAR(error(ProductFormat::fp8, Operand::gradient), 0.053, 0.01);  // E5M2
  EXPECT_NEAR(error(ProductFormat::mxfp8, Operand::input), 0.0265, 0.006);
  EXPECT_NEAR(error(ProductFormat::mxfp6, Operand::weight), 0.053, 0.012);
  EXPECT_NEAR(error(ProductFormat::mxfp4, Operand::weight), 0.115, 0.03);
  EXPECT_NEAR(error(ProductFormat::nvfp4, Operand::weight), 0.09, 0.025);
  EXPECT_EQ(error(ProductFormat::nvfp4, Operand::gradient), 0);
}

TEST(ProductRounding, RowsThatAreNoWholeBlocksAreRoundedAsTheirBeginnings) {
  const Tensor x = normal({3, 45}, 0, 1, {4, 5, 6}, DType::f32);
  const Tensor y = quant::rounded_to(x, ProductFormat::mxfp8, Operand::input);
  for (size_t row = 0; row < 3; ++row) {
    std::vector<float> block(32, 0.0F);
    std::copy_n(x.values<float>().begin() + static_cast<std::ptrdiff_t>(row * 45 + 32), 13,
                block.begin());
    const auto expected = dequantized(quant::microscaled(block, quant::e4m3));
    for (size_t i = 0; i < 13; ++i) {
      EXPECT_EQ(y.values<float>()[row * 45 + 32 + i], expected[i]);
    }
  }
}

TEST(ProductRounding, IsIdempotentWhereScalesArePowersOfTwo) {
  const Tensor x = normal({7, 96}, 0, 3, {7, 8, 9}, DType::f32);
  for (const ProductFormat format :
       {ProductFormat::mxfp8, ProductFormat::mxfp6, ProductFormat::mxfp4}) {
    const Tensor once = quant::rounded_to(x, format, Operand::weight);
    EXPECT_EQ(relative_error(once, quant::rounded_to(once, format, Operand::weight)), 0);
  }
}

TEST(ProductRounding, GradientsPassStraightThroughOrAreRounded) {
  const Tensor dy = normal({4, 64}, 0, 1, {1, 1, 1}, DType::f32);
  for (const ProductFormat format : all_formats()) {
    Tensor x = normal({4, 64}, 0, 1, {2, 2, 2}, DType::f32);
    require_grad(x);
    backward(sum(quant::rounded_straight_through(x, format, Operand::input) * dy));
    EXPECT_EQ(relative_error(dy, grad(x)), 0);
    clear_grad(x);
    backward(sum(quant::with_rounded_gradient(x, format) * dy));
    EXPECT_EQ(relative_error(quant::rounded_to(dy, format, Operand::gradient), grad(x)), 0);
  }
}

TEST(ProductRounding, KeepsTypesHoldsNothingAndRefusesWhatItCannotRound) {
  for (const ProductFormat format : all_formats()) {
    for (const DType dtype : {DType::bf16, DType::f16, DType::f32}) {
      const Tensor x = converted(normal({3, 40}, 0, 1, {3, 3, 3}, DType::f32), dtype);
      EXPECT_EQ(quant::rounded_to(x, format, Operand::weight).dtype(), dtype);
      EXPECT_EQ(quant::rounded_to(zeros({0, 16}, dtype), format, Operand::input).elements(), 0);
    }
  }
  EXPECT_EQ(
      message_of(
          ErrorKind::dtype,
          [] { quant::rounded_to(zeros({4}, DType::i64), ProductFormat::fp8, Operand::input); }),
      "product rounding: takes f32, bf16 or f16 rows: got i64 of shape [4]");
  EXPECT_FALSE(quant::product_format_named("fp9"));
}

}  // namespace
}  // namespace ingot::testing
