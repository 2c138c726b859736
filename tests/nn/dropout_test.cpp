#include "ingot/nn/dropout.h"

#include <gtest/gtest.h>

#include <cmath>

#include "ingot/tensor/factories.h"
#include "tests/support/op_case.h"

namespace ingot::testing {
namespace {

class Two : public nn::Module {
 public:
  void visit(nn::Visitor& v) override {
    v("a", a);
    v("b", b);
  }
  nn::Dropout a{0.3}, b{0.3};
};

TEST(Dropout, IsTheIdentityOutsideTraining) {
  const Tensor x = random_tensor({100}, 1);
  Two two;
  EXPECT_TRUE(same_bits(two.a(x, {}), x));
}

TEST(Dropout, ZeroesTheGivenFractionAndScalesTheRest) {
  const int64_t count = 200000;
  const Tensor y = Two().a(full({count}, 1, DType::f64), {.seed = 1, .training = true});
  int64_t zeroed = 0;
  for (const double value : y.values<double>()) {
    zeroed += value == 0 ? 1 : 0;
    EXPECT_TRUE(value == 0 || std::abs(value - 1 / 0.7) < 1e-12);
  }
  const double error = std::sqrt(0.3 * 0.7 * static_cast<double>(count));
  EXPECT_NEAR(static_cast<double>(zeroed), 0.3 * static_cast<double>(count), 3 * error);
}

TEST(Dropout, DependsOnSeedStepMicroBatchAndSiteAlone) {
  Two two;
  nn::name_dropout_sites(two);
  const Tensor x = full({1000}, 1, DType::f32);
  const Randomness now{.seed = 1, .step = 5, .micro = 2, .training = true};
  const Tensor y = two.a(x, now);
  EXPECT_TRUE(same_bits(two.a(x, now), y));
  EXPECT_FALSE(same_bits(two.b(x, now), y));
  for (const Randomness& other :
       {Randomness{2, 5, 2, true}, Randomness{1, 6, 2, true}, Randomness{1, 5, 3, true}}) {
    EXPECT_FALSE(same_bits(two.a(x, other), y));
  }
}

}  // namespace
}  // namespace ingot::testing
