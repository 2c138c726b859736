#include "ingot/optim/clip.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <omp.h>

#include <cmath>

#include "tests/optim/given.h"
#include "tests/support/message.h"

namespace ingot::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TensorDict random_gradients(int64_t size) {
  Tensor a = zeros({size, 3}, DType::f32);
  Tensor b = zeros({5}, DType::f32);
  require_grad(a);
  require_grad(b);
  grad(a) = normal({size, 3}, 0, 2, {7, 0, 0}, DType::f32);
  grad(b) = normal({5}, 0, 2, {7, 0, 1}, DType::f32);
  return dict({{"a", a}, {"b", b}});
}

TEST(Clipping, LeavesANormOfAtMostTheLimitAndTheDirection) {
  const TensorDict parameters = random_gradients(1000);
  const std::vector<double> before = numbers(grad(parameters.at("a")));
  const double norm = gradient_norm(parameters);
  for (const ClipForm form : {ClipForm::torch, ClipForm::exact}) {
    const TensorDict clipped = random_gradients(1000);
    scale_gradients(clipped, clip_factor(norm, 1, form));
    EXPECT_LE(gradient_norm(clipped), 1 + 1e-5);
    EXPECT_NEAR(gradient_norm(clipped), 1, 1e-5);
    double dot = 0;
    double square = 0;
    double square_before = 0;
    const std::vector<double> after = numbers(grad(clipped.at("a")));
    for (size_t i = 0; i < after.size(); ++i) {
      dot += after[i] * before[i];
      square += after[i] * after[i];
      square_before += before[i] * before[i];
    }
    EXPECT_NEAR(dot / std::sqrt(square * square_before), 1, 1e-12);
  }
}

TEST(Clipping, DoesNothingBelowTheLimitOrWithoutOne) {
  EXPECT_EQ(clip_factor(0.5, 1), 1);
  EXPECT_EQ(clip_factor(1, 1, ClipForm::exact), 1);
  EXPECT_EQ(clip_factor(1e9, 0), 1);
  EXPECT_EQ(clip_factor(4, 1, ClipForm::exact), 0.25);
  EXPECT_DOUBLE_EQ(clip_factor(4, 1), 1 / (4 + 1e-6));
}

TEST(GradientNorm, IsThatOfAllGradientsTogether) {
  for (const int64_t size : {1, 5, 16384, 30001}) {
    const TensorDict parameters = random_gradients(size);
    double square = 0;
    double most = 0;
    for (const auto& [name, p] : parameters) {
      for (const double g : numbers(grad(p))) {
        square += g * g;
        most = std::max(most, std::abs(g));
      }
    }
    EXPECT_NEAR(gradient_norm(parameters), std::sqrt(square), 1e-12 * std::sqrt(square));
    EXPECT_EQ(gradient_norm(parameters, NormKind::largest), most);
  }
}

TEST(GradientNorm, DoesNotDependOnTheNumberOfThreads) {
  const TensorDict parameters = random_gradients(100000);
  const int threads = omp_get_max_threads();
  const double several = gradient_norm(parameters);
  omp_set_num_threads(1);
  const double one = gradient_norm(parameters);
  omp_set_num_threads(3);
  const double three = gradient_norm(parameters);
  omp_set_num_threads(threads);
  EXPECT_EQ(several, one);
  EXPECT_EQ(several, three);
}

TEST(GradientNorm, TakesEveryFloatingPointTypeAndMissingGradients) {
  for (const DType dtype : {DType::f64, DType::f32, DType::bf16, DType::f16}) {
    Tensor a = zeros({2}, dtype);
    Tensor b = zeros({2}, dtype);
    require_grad(a);
    require_grad(b);
    grad(a) = converted(tensor_of(std::vector<double>{3, 4}, {2}), dtype);
    EXPECT_EQ(gradient_norm(dict({{"a", a}, {"b", b}})), 5) << name(dtype);
    EXPECT_EQ(gradient_norm(dict({{"a", a}, {"b", b}}), NormKind::largest), 4) << name(dtype);
  }
}

TEST(GradientNorm, ShowsNonFiniteGradientsAndWhoseTheyAre) {
  for (const double bad : {std::nan(""), HUGE_VAL}) {
    const TensorDict parameters = random_gradients(40);
    EXPECT_TRUE(non_finite_gradients(parameters).empty());
    grad(parameters.at("b")).mutable_values<float>()[3] = static_cast<float>(bad);
    EXPECT_THAT(non_finite_gradients(parameters), ElementsAre("b"));
    const double norm = gradient_norm(parameters);
    const double most = gradient_norm(parameters, NormKind::largest);
    EXPECT_FALSE(std::isfinite(norm));
    EXPECT_EQ(std::isnan(most), std::isnan(bad));
    EXPECT_FALSE(std::isfinite(most));
    EXPECT_THAT(message_of(ErrorKind::numeric, [&] { clip_factor(norm, 1); }),
                HasSubstr("clip: the gradient norm is not finite"));
  }
}

TEST(ClippingByValue, BoundsEachElementAndKeepsNan) {
  const Tensor p = parameter(std::vector<double>(5), {5}, DType::f32);
  give(p, {-3, -0.5, 0, 0.25, 9});
  clip_by_value(dict({{"p", p}}), 1);
  EXPECT_THAT(numbers(grad(p)), ElementsAre(-1, -0.5, 0, 0.25, 1));
  give(p, {std::nan(""), 2, 0, 0, 0});
  clip_by_value(dict({{"p", p}}), 1);
  EXPECT_TRUE(std::isnan(numbers(grad(p))[0]));
  EXPECT_EQ(numbers(grad(p))[1], 1);
}

}  // namespace
}  // namespace ingot::testing
