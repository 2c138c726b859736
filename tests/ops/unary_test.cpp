#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "ingot/autograd/backward.h"
#include "ingot/autograd/record.h"
#include "ingot/ops/elementwise.h"
#include "ingot/tensor/copy.h"
#include "ingot/tensor/factories.h"
#include "tests/support/op_case.h"

namespace ingot::testing {
namespace {

using Scalar = std::function<double(double)>;

Tensor mapped(const Tensor& x, const Scalar& f) {
  Tensor y = empty(x.shape(), DType::f64);
  const Tensor wide = converted(x, DType::f64);
  std::ranges::transform(wide.values<double>(), y.mutable_values<double>().begin(), f);
  return y;
}

double normal_cdf(double x) { return 0.5 * std::erfc(-x / std::numbers::sqrt2); }

struct Function {
  const char* name;
  std::function<Tensor(const Tensor&)> run;
  Scalar f;
  double low = -4;  // where it is tried
  double high = 4;
};

std::vector<Function> functions() {
  return {
      {"exp", exp, [](double x) { return std::exp(x); }, -3, 2},
      {"log", log, [](double x) { return std::log(x); }, 0.3, 4},
      {"sqrt", sqrt, [](double x) { return std::sqrt(x); }, 0.3, 4},
      {"rsqrt", rsqrt, [](double x) { return 1 / std::sqrt(x); }, 0.3, 4},
      {"square", square, [](double x) { return x * x; }, -2, 2},
      {"pow", [](const Tensor& x) { return pow(x, 1.7); },
       [](double x) { return std::pow(x, 1.7); }, 0.3, 3},
      {"sin", sin, [](double x) { return std::sin(x); }},
      {"cos", cos, [](double x) { return std::cos(x); }},
      {"sigmoid", sigmoid, [](double x) { return 1 / (1 + std::exp(-x)); }},
      {"log_sigmoid", log_sigmoid, [](double x) { return -std::log1p(std::exp(-x)); }},
      {"softplus", softplus, [](double x) { return std::log1p(std::exp(x)); }},
      {"tanh", tanh, [](double x) { return std::tanh(x); }},
      {"silu", silu, [](double x) { return x / (1 + std::exp(-x)); }},
      {"gelu", gelu, [](double x) { return x * normal_cdf(x); }},
      {"gelu_tanh", gelu_tanh,
       [](double x) {
         const double u = std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x);
         return 0.5 * x * (1 + std::tanh(u));
       }},
  };
}

TEST(Unary, SmoothFunctionsPassTheirCases) {
  for (const Function& function : functions()) {
    const auto values = [&](const Shape& shape, uint64_t seed) {
      return uniform(shape, function.low, function.high, {seed, 0, 0}, DType::f64);
    };
    OpCase op;
    op.name = function.name;
    op.run = [&](const TensorList& x) { return TensorList{function.run(x[0])}; };
    op.reference = [&](const TensorList& x) { return TensorList{mapped(x[0], function.f)}; };
    op.samples = {{"odd size", {values({3, 5, 37}, 1)}},
                  {"a scalar", {values({}, 2)}},
                  {"one column", {values({7, 1}, 3)}},
                  {"empty", {values({0, 7}, 4)}}};
    op.twice = true;
    op.refusals = {{[&] { function.run(zeros({2}, DType::i64)); },
                    std::string(function.name) + ": takes floating-point tensors: got i64"}};
    check_op(op);
  }
}

// Values at least 0.1 from the kinks at −1, 0 and 1.
Tensor off_the_kinks(const Shape& shape, uint64_t seed) {
  Tensor x = uniform(shape, 0.1, 0.9, {seed, 0, 0}, DType::f64);
  auto values = x.mutable_values<double>();
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] += static_cast<double>(i % 4) - 2;
  }
  return x;
}

TEST(Unary, FunctionsWithKinksPassTheirCases) {
  const std::vector<Function> kinked = {
      {"abs", abs, [](double x) { return std::abs(x); }},
      {"clamp", [](const Tensor& x) { return clamp(x, -1, 1); },
       [](double x) { return std::clamp(x, -1.0, 1.0); }},
      {"relu", relu, [](double x) { return std::max(x, 0.0); }},
      {"relu_squared", relu_squared, [](double x) { return std::pow(std::max(x, 0.0), 2); }}};
  for (const Function& function : kinked) {
    OpCase op;
    op.name = function.name;
    op.run = [&](const TensorList& x) { return TensorList{function.run(x[0])}; };
    op.reference = [&](const TensorList& x) { return TensorList{mapped(x[0], function.f)}; };
    op.samples = {{"odd size", {off_the_kinks({3, 37}, 1)}}, {"empty", {off_the_kinks({0}, 2)}}};
    op.twice = true;
    check_op(op);
  }
  expect_error([] { clamp(zeros({1}, DType::f32), 2, 1); },
               "clamp: low exceeds high: low is 2, high is 1");
}

TEST(Unary, AtAKinkTheDerivativeIsTheDocumentedOne) {
  const auto slope_at = [](const std::function<Tensor(const Tensor&)>& f, double at) {
    Tensor x = scalar(at, DType::f64);
    require_grad(x);
    return gradients({f(x)}, {x}, {scalar(1, DType::f64)})[0].item();
  };
  EXPECT_EQ(slope_at(abs, 0), 0);
  EXPECT_EQ(slope_at(abs, -2), -1);
  EXPECT_EQ(slope_at(relu, 0), 0);
  EXPECT_EQ(slope_at([](const Tensor& x) { return clamp(x, 0, 1); }, 1), 1);
  EXPECT_EQ(slope_at([](const Tensor& x) { return pow(x, 0); }, 0), 0);
}

// Largest relative error of `run` in f32 over `count` values in [low, high], against f in double;
// results smaller than `floor` are measured against it.
double relative_error(const Function& function, double low, double high, double floor) {
  const Tensor x = uniform({200001}, low, high, {7, 0, 0}, DType::f32);
  const Tensor got = converted(function.run(x), DType::f64);
  const Tensor expected = mapped(x, function.f);
  double worst = 0;
  for (size_t i = 0; i < got.values<double>().size(); ++i) {
    const double y = expected.values<double>()[i];
    worst = std::max(worst, std::abs(got.values<double>()[i] - y) / std::max(std::abs(y), floor));
  }
  return worst;
}

TEST(Unary, SinglePrecisionIsAccurate) {
  for (const Function& function : functions()) {
    EXPECT_LE(relative_error(function, function.low, function.high, 1), 2e-7) << function.name;
  }
}

TEST(Unary, GeluKeepsDigitsInTheLowerTail) {
  for (const Function& function : functions()) {
    if (std::string(function.name) == "gelu") {
      EXPECT_LE(relative_error(function, -8, -4, 0), 5e-6);
    }
  }
}

TEST(Unary, ExtremeArgumentsGiveTheLimits) {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  const auto at = [](const std::function<Tensor(const Tensor&)>& f, float x) {
    const double single = f(scalar(x, DType::f32)).item();
    const double wide = f(scalar(x, DType::f64)).item();
    EXPECT_TRUE(std::isnan(single)
                    ? std::isnan(wide)
                    : std::abs(single - wide) <= 1e-6 * std::max(1.0, std::abs(wide)) ||
                          single == wide)
        << x << ": " << single << ", " << wide;
    return single;
  };
  EXPECT_EQ(at(exp, -infinity), 0);
  EXPECT_EQ(at(exp, infinity), infinity);
  EXPECT_EQ(exp(scalar(100, DType::f32)).item(), infinity);
  EXPECT_EQ(exp(scalar(800, DType::f64)).item(), std::numeric_limits<double>::infinity());
  EXPECT_EQ(at(log, 0), -infinity);
  EXPECT_EQ(at(log, infinity), infinity);
  EXPECT_TRUE(std::isnan(at(log, -1)));
  EXPECT_EQ(at(sigmoid, -200), 0);
  EXPECT_EQ(at(sigmoid, 200), 1);
  EXPECT_EQ(at(log_sigmoid, -200), -200);
  EXPECT_EQ(at(log_sigmoid, 200), 0);
  EXPECT_EQ(at(softplus, 200), 200);
  EXPECT_EQ(at(softplus, -200), 0);
  EXPECT_EQ(at(tanh, infinity), 1);
  EXPECT_EQ(at(tanh, -infinity), -1);
  EXPECT_EQ(at(silu, -200), 0);
  EXPECT_EQ(at(gelu, -200), 0);
  EXPECT_EQ(at(gelu, 1e20F), 1e20F);
  EXPECT_EQ(at(gelu_tanh, 1e20F), 1e20F);
  EXPECT_NEAR(at(sin, 1e6F), std::sin(1e6), 1e-6);
  for (const Function& function : functions()) {
    EXPECT_TRUE(std::isnan(at(function.run, NAN))) << function.name;
  }
  for (const auto& run : {abs, relu, relu_squared}) {
    EXPECT_TRUE(std::isnan(run(scalar(NAN, DType::f32)).item()));
  }
  EXPECT_TRUE(std::isnan(clamp(scalar(NAN, DType::f32), 0, 1).item()));
}

TEST(Unary, DerivativesStayFiniteFarOut) {
  for (const Function& function : functions()) {
    for (const double at : {-1e30, -300.0, 300.0, 1e30}) {
      const bool defined = std::isfinite(function.f(at)) && std::abs(function.f(at)) < 1e35;
      if (!defined) {
        continue;
      }
      Tensor x = scalar(at, DType::f32);
      require_grad(x);
      const Tensor dx = gradients({function.run(x)}, {x}, {scalar(1, DType::f32)})[0];
      EXPECT_TRUE(std::isfinite(dx.item())) << function.name << " at " << at;
    }
  }
}

}  // namespace
}  // namespace ingot::testing
