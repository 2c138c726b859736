#include "ingot/ops/decompositions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "ingot/ops/elementwise.h"
#include "ingot/ops/matmul.h"
#include "ingot/ops/shape.h"
#include "ingot/tensor/copy.h"
#include "ingot/tensor/factories.h"
#include "tests/support/message.h"
#include "tests/support/op_case.h"

namespace ingot::testing {
namespace {

using ::testing::HasSubstr;

Tensor identity(int64_t n) {
  Tensor out = zeros({n, n}, DType::f64);
  for (int64_t i = 0; i < n; ++i) {
    out.mutable_values<double>()[static_cast<size_t>(i * n + i)] = 1;
  }
  return out;
}

void expect_equal(const Tensor& found, const Tensor& wanted, double tolerance) {
  ASSERT_EQ(found.shape(), wanted.shape());
  const Tensor a = dense(found), b = dense(wanted);
  for (size_t i = 0; i < a.values<double>().size(); ++i) {
    ASSERT_NEAR(a.values<double>()[i], b.values<double>()[i], tolerance) << "at " << i;
  }
}

TEST(SymmetricEigen, PutsTheMatrixTogetherAgain) {
  for (const int64_t n : {1, 2, 7, 33}) {
    const Tensor half = random_tensor({n, n}, 5);
    const Tensor a = half + transpose(half);
    const auto [values, vectors] = symmetric_eigen(a);
    expect_equal(matmul(vectors * values, transpose(vectors)), a, 1e-12);
    expect_equal(matmul(transpose(vectors), vectors), identity(n), 1e-13);
    expect_equal(symmetric_eigenvalues(a), values, 1e-12);
    for (size_t i = 1; i < static_cast<size_t>(n); ++i) {
      EXPECT_GE(values.values<double>()[i - 1], values.values<double>()[i]);
    }
  }
}

TEST(Qr, HasOrthonormalColumnsForAnyRank) {
  for (const auto& [m, n, rank] :
       {std::tuple<int64_t, int64_t, int64_t>{5, 5, 5}, {9, 4, 4}, {9, 4, 2}, {3, 1, 1}}) {
    const Tensor a = matmul(random_tensor({m, rank}, 1), random_tensor({rank, n}, 2));
    const auto [q, r] = qr(a);
    expect_equal(matmul(q, r), a, 1e-13);
    expect_equal(matmul(transpose(q), q), identity(n), 1e-13);
    for (int64_t i = 0; i < n; ++i) {
      for (int64_t j = 0; j < i; ++j) {
        EXPECT_EQ(r.values<double>()[static_cast<size_t>(i * n + j)], 0);
      }
    }
  }
}

TEST(Decompositions, RefuseWhatTheyCannotTake) {
  const Tensor wide = zeros({2, 3}, DType::f64);
  EXPECT_THAT(message_of(ErrorKind::shape, [&] { symmetric_eigen(wide); }),
              HasSubstr("takes a square matrix"));
  EXPECT_THAT(message_of(ErrorKind::shape, [&] { qr(wide); }),
              HasSubstr("at least as many rows as columns"));
  const Tensor nan = full({2, 2}, std::numeric_limits<double>::quiet_NaN(), DType::f64);
  EXPECT_THAT(message_of(ErrorKind::numeric, [&] { symmetric_power(nan, 0, -1); }),
              HasSubstr("not finite"));
}

}  // namespace
}  // namespace ingot::testing
