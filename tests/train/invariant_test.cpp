#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <random>

#include "ingot/base/exact_sum.h"
#include "ingot/base/hash.h"
#include "ingot/train/recheck.h"
#include "tests/support/op_case.h"
#include "tests/train/faults.h"

namespace ingot::testing {
namespace {

template <class T>
ExactSum sum_of(const std::vector<T>& values) {
  ExactSum out;
  for (const T value : values) {
    add_exactly(out, value);
  }
  return out;
}

RC_GTEST_PROP(ExactSum, AnyOrderAndGroupingGivesTheSameBits, (std::vector<int32_t> mantissas)) {
  std::vector<float> values;
  for (size_t i = 0; i < mantissas.size(); ++i) {
    values.push_back(
        std::ldexp(static_cast<float>(mantissas[i]), static_cast<int>(i * 7 % 60) - 70));
  }
  const ExactSum forward = sum_of(values);
  std::reverse(values.begin(), values.end());
  RC_ASSERT(sum_of(values) == forward);
  std::mt19937 random(static_cast<unsigned>(values.size()));
  std::shuffle(values.begin(), values.end(), random);
  RC_ASSERT(sum_of(values) == forward);
}

TEST(ExactSum, IsExactWhereFloatsAreNot) {
  EXPECT_EQ(value_of(sum_of<float>({0x1p40F, 1, 0x1p-40F, -0x1p40F})), 1 + 0x1p-40);
  EXPECT_EQ(value_of(sum_of<float>({0.1F, -0.1F})), 0);
  EXPECT_EQ(value_of(sum_of<float>({-3.5F, 1.25F})), -2.25);
  EXPECT_EQ(value_of(sum_of<double>({0.1, 0.2})), 0.1 + 0.2);
  EXPECT_EQ(value_of(sum_of<float>({std::numeric_limits<float>::denorm_min()})), 0);
  EXPECT_EQ(value_of(sum_of<float>({0x1p-72F, 0x1p-72F})), 0x1p-71);
  EXPECT_EQ(value_of(sum_of<float>({0x1.8p-73F})), 0x1p-72);  // rounded to a unit
  std::vector<float> many(1000, 0x1.fffffep44F);
  EXPECT_EQ(value_of(sum_of(many)), 1000 * 0x1.fffffep44);
}

TEST(ExactSum, WhatIsNoNumberStaysSo) {
  const float infinity = std::numeric_limits<float>::infinity();
  for (const float bad : {infinity, -infinity, std::nanf(""), 0x1p45F}) {
    EXPECT_TRUE(std::isnan(value_of(sum_of<float>({1, bad, 1}))));
    EXPECT_TRUE(std::isnan(value_of(sum_of<float>({bad, bad}))));
  }
}

// Eight rows a step in `accumulate` parts, with dropout.
NamedHashes weights_after(int64_t accumulate, DType dtype, bool invariant, double* loss) {
  Patient patient(3, accumulate, dtype);
  patient.training.invariant = invariant;
  Reports reports;
  patient.training.observers = {&reports};
  train(patient.state, patient.training);
  *loss = reports.all.back().loss;
  NamedHashes out;
  for (const auto& [name, p] : patient.model->parameters()) {
    out.emplace_back(name, hash_hex({static_cast<const std::byte*>(p.view().data),
                                     static_cast<size_t>(p.bytes())}));
  }
  return out;
}

TEST(Invariant, AnyDivisionIntoMicroBatchesGivesTheSameBits) {
  for (const DType dtype : {DType::f32, DType::bf16}) {
    double expected_loss = 0;
    const NamedHashes expected = weights_after(1, dtype, true, &expected_loss);
    for (const int64_t accumulate : {2, 4, 8}) {
      double loss = 0;
      EXPECT_EQ(weights_after(accumulate, dtype, true, &loss), expected) << accumulate;
      EXPECT_EQ(loss, expected_loss);
    }
    double usual = 0;  // dropout, if nothing else, depends on the division
    EXPECT_NE(weights_after(2, dtype, false, &usual), expected);
    EXPECT_NEAR(usual, expected_loss, 0.1 * expected_loss);
  }
}

TEST(Invariant, AgreesWithTheUsualSumsUpToRounding) {
  const auto gradients = [](bool invariant) {
    auto model = tiny_model();
    Optimizer optimizer = make_optimizer({}, model->parameters());
    Training training = tiny_training(*model, optimizer, 1);
    training.invariant = invariant;
    TrainState state;
    training.before_update = [] {};
    double norm = train_step(state, training).grad_norm;
    return norm;
  };
  const double usual = gradients(false);
  EXPECT_NEAR(gradients(true), usual, 1e-6 * usual);
}

TEST(Invariant, RefusesAnObjectiveThatComparesRows) {
  Patient patient(1);
  patient.training.invariant = true;
  patient.training.rows_alone = false;
  expect_error([&] { train(patient.state, patient.training); },
               "takes every row by itself, and this objective compares rows");
}

}  // namespace
}  // namespace ingot::testing
