#include "ingot/ops/singular_values.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "ingot/ops/matmul.h"
#include "ingot/tensor/factories.h"
#include "tests/support/message.h"
#include "tests/support/op_case.h"

namespace ingot::testing {
namespace {

using ::testing::HasSubstr;

// A diagonal matrix turned on both sides has the diagonal's singular values.
TEST(SingularValues, AreThoseOfATurnedDiagonal) {
  const double a = 0.3, b = 1.1;
  const auto turn = [](double angle) {
    return tensor_of(
        std::vector<double>{std::cos(angle), -std::sin(angle), std::sin(angle), std::cos(angle)},
        {2, 2});
  };
  const Tensor diagonal = tensor_of(std::vector<double>{3, 0, 0, 0, 0.5, 0}, {2, 3});
  const Tensor turned = matmul(turn(a), diagonal);
  for (const Tensor& one : {turned, matmul(turn(b), turned)}) {
    const std::vector<double> found = singular_values(one);
    ASSERT_EQ(found.size(), 2U);
    EXPECT_NEAR(found[0], 3, 1e-12);
    EXPECT_NEAR(found[1], 0.5, 1e-12);
  }
}

TEST(SingularValues, TellTheRankOfAProduct) {
  for (const auto& [rows, columns] :
       {std::pair<int64_t, int64_t>{40, 24}, {24, 40}, {300, 7}, {5, 5}}) {
    for (const int64_t k : {1, 3, 5}) {
      const Tensor product = matmul(random_tensor({rows, k}, 3), random_tensor({k, columns}, 4));
      const double tolerance = GramMatrix(rows, columns).tolerance();
      EXPECT_EQ(numerical_rank(singular_values(product), tolerance), k)
          << rows << ' ' << columns << ' ' << k;
    }
  }
}

TEST(SingularValues, DoNotDependOnThePiecesThatTheMatrixComesIn) {
  const Tensor whole = random_tensor({700, 9}, 5);
  const auto values = whole.values<double>();
  GramMatrix gram(700, 9);
  for (size_t at = 0; at < values.size(); at += 13) {
    gram.add(values.subspan(at, std::min<size_t>(13, values.size() - at)));
  }
  const std::vector<double> expected = singular_values(whole);
  const std::vector<double> found = gram.singular_values();
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_NEAR(found[i], expected[i], 1e-10);
  }
}

TEST(EffectiveRank, IsTheNumberOfEqualValuesAndOneForASingleOne) {
  EXPECT_NEAR(effective_rank(std::vector<double>{2, 2, 2, 2}), 4, 1e-12);
  EXPECT_NEAR(effective_rank(std::vector<double>{7, 0, 0}), 1, 1e-12);
  EXPECT_EQ(effective_rank(std::vector<double>{0, 0}), 0);
  // p = 3/4 and 1/4: exp(0.5623) by hand.
  EXPECT_NEAR(effective_rank(std::vector<double>{3, 1}), 1.7548, 1e-4);
  EXPECT_EQ(rank_holding(std::vector<double>{3, 1, 1}, 0.9), 2);  // 9, then 10 of 11
  EXPECT_EQ(rank_holding(std::vector<double>{3, 1, 1}, 0.8), 1);
}

TEST(SingularValues, SayWhatTheyCannotTake) {
  EXPECT_THAT(message_of(ErrorKind::shape, [] { singular_values(zeros({3}, DType::f32)); }),
              HasSubstr("takes a matrix: got [3]"));
  EXPECT_THAT(message_of(ErrorKind::numeric,
                         [] {
                           singular_values(tensor_of(std::vector<double>{1, NAN}, {1, 2}));
                         }),
              HasSubstr("not finite"));
  EXPECT_THAT(message_of(ErrorKind::argument, [] { GramMatrix(3, 2).singular_values(); }),
              HasSubstr("0 of 3 rows have come"));
}

}  // namespace
}  // namespace ingot::testing
