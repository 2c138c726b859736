#include "ingot/ops/dropout.h"

#include <gtest/gtest.h>
#include <omp.h>

#include <cmath>

#include "ingot/autograd/backward.h"
#include "ingot/autograd/record.h"
#include "ingot/tensor/factories.h"
#include "tests/support/op_case.h"

namespace ingot::testing {
namespace {

constexpr RandomKey key{7, 8, 9};

TEST(Dropout, PassesItsCase) {
  OpCase op;
  op.name = "dropout";
  op.run = [](const TensorList& x) { return TensorList{dropout(x[0], 0.3, key)}; };
  op.reference = [](const TensorList& x) {
    Tensor y = zeros(x[0].shape(), DType::f64);
    auto out = y.mutable_values<double>();
    const Philox random(key);
    for (size_t i = 0; i < out.size(); ++i) {
      const double uniform = static_cast<double>(random.word(i)) * 0x1p-32;
      out[i] = uniform < 0.3 ? 0 : x[0].values<double>()[i] / 0.7;
    }
    return TensorList{y};
  };
  op.samples = {{"odd size", {random_tensor({3, 5, 37}, 1)}},
                {"several pieces", {random_tensor({3, 1111}, 2)}},
                {"fewer than a block", {random_tensor({3}, 3)}},
                {"a scalar", {random_tensor({}, 4)}},
                {"nothing", {random_tensor({0, 4}, 5)}}};
  op.twice = true;
  op.refusals = {
      {[] { dropout(zeros({2}, DType::i64), 0.1, key); },
       "dropout: takes floating-point tensors: got i64"},
      {[] { dropout(zeros({2}, DType::f32), 1, key); }, "dropout: p is outside [0, 1): got 1"},
      {[] { dropout(zeros({2}, DType::f32), -0.1, key); },
       "dropout: p is outside [0, 1): got -0.1"},
      {[] { dropout(zeros({2}, DType::f32), std::nan(""), key); }, "dropout: p is outside [0, 1)"}};
  check_op(op);
}

TEST(Dropout, KeepsTheExpectedShareAndTheMean) {
  constexpr int64_t count = 1 << 20;
  const Tensor y = dropout(full({count}, 1, DType::f32), 0.1, key);
  int64_t kept = 0;
  for (const float value : y.values<float>()) {
    kept += value != 0 ? 1 : 0;
    EXPECT_TRUE(value == 0 || value == 1.0F / 0.9F);
  }
  // Six standard deviations of the binomial distribution.
  const double deviation = std::sqrt(0.1 * 0.9 * count);
  EXPECT_NEAR(static_cast<double>(kept), 0.9 * count, 6 * deviation);
}

TEST(Dropout, DropsTheSameElementsForAnyThreadCountTypeAndShape) {
  const int before = omp_get_max_threads();
  const Tensor wide = dropout(full({100003}, 1, DType::f64), 0.5, key);
  for (const int threads : {1, 2, 3}) {
    omp_set_num_threads(threads);
    const Tensor narrow = dropout(full({100003, 1}, 1, DType::bf16), 0.5, key);
    size_t different = 0;
    for (size_t i = 0; i < 100003; ++i) {
      const bool dropped = static_cast<float>(narrow.values<BF16>()[i]) == 0;
      different += dropped != (wide.values<double>()[i] == 0) ? 1 : 0;
    }
    EXPECT_EQ(different, 0U) << threads;
  }
  omp_set_num_threads(before);
}

TEST(Dropout, WithoutProbabilityReturnsItsInput) {
  const Tensor x = random_tensor({5}, 1);
  EXPECT_EQ(dropout(x, 0, key).storage(), x.storage());
}

TEST(Dropout, ADifferentKeyDropsOtherElements) {
  const Tensor x = full({1000}, 1, DType::f32);
  EXPECT_FALSE(same_bits(dropout(x, 0.5, key), dropout(x, 0.5, {7, 9, 9})));
}

}  // namespace
}  // namespace ingot::testing
