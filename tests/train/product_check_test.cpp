#include "ingot/kernels/product_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "ingot/kernels/matmul.h"
#include "ingot/tensor/copy.h"
#include "ingot/tensor/factories.h"
#include "ingot/tensor/layout.h"
#include "ingot/train/diagnosis.h"
#include "tests/support/message.h"
#include "tests/train/tiny.h"

namespace ingot::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

struct Operands {
  Tensor a, b, y;
};

Operands operands(int64_t rows, int64_t inner, int64_t columns, DType dtype, DType out) {
  return {converted(normal({rows, inner}, 0.3, 1, {1, 0, 1}, DType::f32), dtype),
          converted(normal({columns, inner}, 0.1, 1, {1, 0, 2}, DType::f32), dtype),
          zeros({rows, columns}, out)};
}

void multiply(Operands& o, kernels::Accumulate accumulate = kernels::Accumulate::no) {
  kernels::matmul(Cpu{}, o.a.view(), transposed(o.b, 0, 1).view(), o.y.mutable_view(), accumulate);
}

TEST(ProductChecks, RaiseNoAlarmOverProductsOfAnyTypeAndShape) {
  const kernels::ProductChecks checks;
  const int64_t before = kernels::products_checked();
  for (const auto& [dtype, out] : std::vector<std::pair<DType, DType>>{{DType::f32, DType::f32},
                                                                       {DType::bf16, DType::bf16},
                                                                       {DType::bf16, DType::f32},
                                                                       {DType::f16, DType::f16},
                                                                       {DType::f64, DType::f64}}) {
    for (const auto& [rows, inner, columns] : std::vector<std::array<int64_t, 3>>{
             {1, 1, 1}, {3, 700, 40}, {64, 33, 129}, {130, 512, 96}}) {
      Operands o = operands(rows, inner, columns, dtype, out);
      multiply(o);
      multiply(o, kernels::Accumulate::yes);
    }
  }
  EXPECT_EQ(kernels::products_checked() - before, 5 * 4 * 2);
}

TEST(ProductChecks, EqualRowsAreNoFaultEither) {
  const kernels::ProductChecks checks;  // their roundings all go one way
  for (const DType dtype : {DType::f32, DType::bf16, DType::f16}) {
    Operands o = {full({20, 300}, 0.3, dtype), full({500, 300}, 0.7, dtype),
                  zeros({20, 500}, dtype)};
    multiply(o);
  }
}

TEST(ProductChecks, AFlippedBitIsFoundAndItsPlaceNamed) {
  for (const auto& [dtype, bit] : std::vector<std::pair<DType, int>>{{DType::f32, 30},
                                                                     {DType::f32, 25},
                                                                     {DType::f32, 23},
                                                                     {DType::bf16, 14},
                                                                     {DType::f64, 62}}) {
    Operands o = operands(64, 128, 96, dtype, dtype);
    multiply(o);
    // The first number of row 17 between 1 and 2: the highest bit of its exponent makes it huge.
    const Tensor y = converted(o.y, DType::f64);
    int64_t column = 0;
    const auto at = [&] {
      return std::abs(y.values<double>()[static_cast<size_t>(17 * 96 + column)]);
    };
    while (at() < 1 || at() >= 2) {
      ++column;
    }
    const kernels::ProductChecks checks;
    kernels::plant_flip(0, 17 * 96 + column, bit);
    const std::string message = message_of(ErrorKind::numeric, [&] { multiply(o); });
    EXPECT_THAT(
        message,
        AllOf(
            HasSubstr("matmul: a checksum does not fit: row 17 of [64, 96] = [64, 128] x [128, 96] "
                      "sums to "),
            HasSubstr(concat("furthest off in column ", column, "; this processor"))))
        << name(dtype) << " bit " << bit;
  }
}

// A bias that is larger than any sum is no fault, and what was there before cannot be told apart.
TEST(ProductChecks, ThePlaceIsFoundBesideABiasAndNotNamedWhereSumsAreAddedUp) {
  Operands o = operands(64, 128, 96, DType::f32, DType::f32);
  Tensor bias = zeros({96}, DType::f32);
  bias.mutable_values<float>()[3] = 1000;
  const kernels::ProductChecks checks;
  const auto flipped = [&](kernels::Accumulate accumulate) {
    kernels::plant_flip(0, 17 * 96 + 40, 29);
    return message_of(ErrorKind::numeric, [&] {
      kernels::matmul(Cpu{}, o.a.view(), transposed(o.b, 0, 1).view(), o.y.mutable_view(),
                      accumulate, bias.view());
    });
  };
  EXPECT_THAT(flipped(kernels::Accumulate::no), HasSubstr(", furthest off in column 40; this"));
  EXPECT_THAT(flipped(kernels::Accumulate::yes),
              AllOf(HasSubstr("row 17 of [64, 96]"), Not(HasSubstr("in column"))));
}

TEST(ProductChecks, WithoutThemNothingIsChecked) {
  const int64_t before = kernels::products_checked();
  Operands o = operands(8, 16, 8, DType::f32, DType::f32);
  multiply(o);
  EXPECT_EQ(kernels::products_checked(), before);
  EXPECT_FALSE(kernels::checking_products());
}

// Every product of a step is looked at, forward and backward; the step's weights are as before, and
// the message says where.
TEST(ProductChecks, AFlipInATrainingStepStopsItAndIsNamed) {
  const auto model = tiny_model();
  model->layers[0]->wrap(named_part("layers.0"));
  Optimizer optimizer(model->parameters(), make_rule(AdamWConfig{}));
  Training training = tiny_training(*model, optimizer, 10, 1);
  training.numbers.checksums = 1;
  TrainState state;
  const int64_t before = kernels::products_checked();
  train_step(state, training);
  const int64_t products = kernels::products_checked() - before;
  EXPECT_GT(products, 20);
  for (const int64_t product : {int64_t{1}, products - 1}) {
    kernels::plant_flip(product, 0, 30);
    const std::string message =
        message_of(ErrorKind::numeric, [&] { train_step(state, training); });
    EXPECT_THAT(message, HasSubstr("a checksum does not fit: row 0"));
    EXPECT_THAT(message, HasSubstr("step 2"));
    EXPECT_THAT(message, product == 1 ? HasSubstr("layers.0") : HasSubstr("in the backward of"));
    EXPECT_EQ(state.step, 1);
  }
  train_step(state, training);  // the same step without the flip
  EXPECT_EQ(state.step, 2);
}

}  // namespace
}  // namespace ingot::testing
