// Operations in f32 against plain loops in double, on random shapes: of every rank to 4, with sizes
// of 0 and 1, dense, transposed and with gaps. Arithmetic of two tensors: elementwise_test.cpp.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "ingot/base/philox.h"
#include "ingot/ops/elementwise.h"
#include "ingot/ops/matmul.h"
#include "ingot/ops/norm.h"
#include "ingot/ops/reduce.h"
#include "ingot/ops/shape.h"
#include "ingot/ops/softmax.h"
#include "ingot/tensor/copy.h"
#include "ingot/tensor/factories.h"
#include "ingot/tensor/layout.h"
#include "tests/support/op_case.h"

namespace ingot::testing {
namespace {

using Lane = std::vector<double>;

class RandomShapes {
 public:
  int64_t size() {
    const uint32_t draw = random_.word(at_++) % 12;
    return draw < 10 ? draw : 1;
  }
  Shape shape(uint32_t least_rank) {
    Shape out;
    const uint32_t rank = least_rank + random_.word(at_++) % (5 - least_rank);
    for (uint32_t i = 0; i < rank; ++i) {
      out.push_back(size());
    }
    return out;
  }
  // Values in [0.5, 2) that lie densely, transposed or with gaps.
  Tensor tensor(const Shape& shape) {
    const uint32_t kind = random_.word(at_++) % 3;
    return random_layout(shape, at_, kind);
  }

 private:
  Philox random_{{2028, 0, 0}};
  uint64_t at_ = 0;
};

// f of every lane along the last dimension: as many values as f returns.
Tensor by_lane(const Tensor& x, const std::function<Lane(const Lane&)>& f, int64_t results) {
  const Tensor from = dense(converted(x, DType::f64));
  const auto size = static_cast<size_t>(x.size(-1));
  Shape shape = x.shape();
  shape[x.rank() - 1] = results;
  std::vector<double> out;
  const size_t lanes = results == 0 ? 0 : static_cast<size_t>(shape.elements() / results);
  for (size_t i = 0; i < lanes; ++i) {
    const auto lane = from.values<double>().subspan(i * size, size);
    const Lane made = f(Lane(lane.begin(), lane.end()));
    out.insert(out.end(), made.begin(), made.end());
  }
  return tensor_of(out, shape);
}

struct Unary {
  const char* name;
  std::function<Tensor(const Tensor&)> run;
  double (*f)(double);
};

std::vector<Unary> unaries() {
  return {{"exp", exp, [](double x) { return std::exp(x); }},
          {"log", log, [](double x) { return std::log(x); }},
          {"sqrt", sqrt, [](double x) { return std::sqrt(x); }},
          {"rsqrt", rsqrt, [](double x) { return 1 / std::sqrt(x); }},
          {"square", square, [](double x) { return x * x; }},
          {"pow", [](const Tensor& x) { return pow(x, 1.7); },
           [](double x) { return std::pow(x, 1.7); }},
          {"abs", [](const Tensor& x) { return abs(x - 1.0); },
           [](double x) { return std::abs(x - 1); }},
          {"clamp", [](const Tensor& x) { return clamp(x, 0.7, 1.1); },
           [](double x) { return std::min(std::max(x, 0.7), 1.1); }},
          {"sin", sin, [](double x) { return std::sin(x); }},
          {"cos", cos, [](double x) { return std::cos(x); }},
          {"negation", [](const Tensor& x) { return -x; }, [](double x) { return -x; }},
          {"relu", [](const Tensor& x) { return relu(x - 1.0); },
           [](double x) { return std::max(x - 1, 0.0); }},
          {"relu_squared", [](const Tensor& x) { return relu_squared(x - 1.0); },
           [](double x) { return std::pow(std::max(x - 1, 0.0), 2); }},
          {"sigmoid", sigmoid, [](double x) { return 1 / (1 + std::exp(-x)); }},
          {"log_sigmoid", log_sigmoid, [](double x) { return -std::log1p(std::exp(-x)); }},
          {"softplus", softplus, [](double x) { return std::log1p(std::exp(x)); }},
          {"tanh", tanh, [](double x) { return std::tanh(x); }},
          {"silu", silu, [](double x) { return x / (1 + std::exp(-x)); }},
          {"gelu", gelu, [](double x) { return x * std::erfc(-x / std::sqrt(2.0)) / 2; }},
          {"gelu_tanh", gelu_tanh, [](double x) {
             return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
           }}};
}

TEST(RandomShapes, FunctionsOfOneTensorAgreeWithADoubleLoop) {
  RandomShapes random;
  int64_t empty_ones = 0;
  for (int round = 0; round < 100; ++round) {
    const Tensor x = random.tensor(random.shape(0));
    empty_ones += x.elements() == 0 ? 1 : 0;
    for (const Unary& unary : unaries()) {
      Tensor expected = copy_of(dense(converted(x, DType::f64)));
      for (double& value : expected.mutable_values<double>()) {
        value = unary.f(value);
      }
      ASSERT_LE(difference(unary.run(x), expected), 1e-5) << unary.name << " of " << x.shape();
    }
  }
  EXPECT_GT(empty_ones, 10);
}

double total(const Lane& lane) {
  double out = 0;
  for (const double value : lane) {
    out += value;
  }
  return out;
}

// ε = 1e-3 keeps the condition of rows of two nearly equal values within f32.
constexpr double eps = 1e-3;

// (x − mean) / √(mean of squares + ε), or without the mean.
Lane normed(const Lane& lane, bool centered) {
  const auto count = static_cast<double>(lane.size());
  const double mean = centered ? total(lane) / count : 0;
  double square = eps;
  for (const double value : lane) {
    square += (value - mean) * (value - mean) / count;
  }
  Lane out;
  for (const double value : lane) {
    out.push_back((value - mean) / std::sqrt(square));
  }
  return out;
}

Lane shares(const Lane& lane, bool logarithm) {
  double sum = 0;
  for (const double value : lane) {
    sum += std::exp(value);
  }
  Lane out;
  for (const double value : lane) {
    out.push_back(logarithm ? value - std::log(sum) : std::exp(value) / sum);
  }
  return out;
}

double variance(const Lane& lane) {
  const auto count = static_cast<double>(lane.size());
  double square = 0;
  for (const double value : lane) {
    square += std::pow(value - total(lane) / count, 2) / count;
  }
  return square;
}

TEST(RandomShapes, ReductionsAgreeWithADoubleLoopOverEveryDimension) {
  struct Case {
    const char* name;
    std::function<Tensor(const Tensor&, int64_t)> run;
    std::function<double(const Lane&)> f;
    bool takes_empty_lanes = false;
  };
  const std::vector<Case> cases = {
      {"sum", [](const Tensor& x, int64_t d) { return sum(x, d, Keep::yes); }, total, true},
      {"mean", [](const Tensor& x, int64_t d) { return mean(x, d, Keep::yes); },
       [](const Lane& lane) { return total(lane) / static_cast<double>(lane.size()); }},
      {"max", [](const Tensor& x, int64_t d) { return max(x, d, Keep::yes); },
       [](const Lane& lane) { return *std::ranges::max_element(lane); }},
      {"min", [](const Tensor& x, int64_t d) { return min(x, d, Keep::yes); },
       [](const Lane& lane) { return *std::ranges::min_element(lane); }},
      {"var", [](const Tensor& x, int64_t d) { return var(x, d, 0, Keep::yes); }, variance},
      {"logsumexp", [](const Tensor& x, int64_t d) { return logsumexp(x, d, Keep::yes); },
       [](const Lane& lane) { return lane[0] - shares(lane, true)[0]; }}};
  RandomShapes random;
  int64_t empty_ones = 0;
  for (int round = 0; round < 150; ++round) {
    const Tensor x = random.tensor(random.shape(1));
    empty_ones += x.elements() == 0 ? 1 : 0;
    for (int64_t dim = 0; dim < x.rank(); ++dim) {
      for (const Case& c : cases) {
        if (x.size(dim) == 0 && !c.takes_empty_lanes) {
          continue;
        }
        const Tensor expected = by_lane(
            transpose(x, dim, -1), [&](const Lane& lane) { return Lane{c.f(lane)}; }, 1);
        ASSERT_LE(difference(transpose(c.run(x, dim), dim, -1), expected), 1e-5)
            << c.name << " over " << dim << " of " << x.shape();
      }
    }
  }
  EXPECT_GT(empty_ones, 20);
}

TEST(RandomShapes, FunctionsOfARowAgreeWithADoubleLoop) {
  struct Case {
    const char* name;
    std::function<Tensor(const Tensor&)> run;
    std::function<Lane(const Lane&)> f;
  };
  const std::vector<Case> cases = {
      {"softmax", [](const Tensor& x) { return softmax(x); },
       [](const Lane& lane) { return shares(lane, false); }},
      {"log_softmax", [](const Tensor& x) { return log_softmax(x); },
       [](const Lane& lane) { return shares(lane, true); }},
      {"layer_norm", [](const Tensor& x) { return layer_norm(x, {}, {}, eps); },
       [](const Lane& lane) { return normed(lane, true); }},
      {"rms_norm", [](const Tensor& x) { return rms_norm(x, {}, eps); },
       [](const Lane& lane) { return normed(lane, false); }}};
  RandomShapes random;
  for (int round = 0; round < 150; ++round) {
    const Tensor x = random.tensor(random.shape(1));
    if (x.size(-1) == 0) {
      continue;
    }
    for (const Case& c : cases) {
      ASSERT_LE(difference(c.run(x), by_lane(x, c.f, x.size(-1))), 1e-5)
          << c.name << " of " << x.shape();
    }
  }
}

TEST(RandomShapes, MatrixProductsAgreeWithADoubleLoop) {
  RandomShapes random;
  for (int round = 0; round < 200; ++round) {
    const int64_t M = random.size(), K = random.size(), N = random.size();
    const Tensor a = random.tensor({M, K});
    const Tensor b = random.tensor({K, N});
    const Tensor wide_a = dense(converted(a, DType::f64)), wide_b = dense(converted(b, DType::f64));
    std::vector<double> expected;
    for (int64_t i = 0; i < M * N; ++i) {
      double sum = 0;
      for (int64_t k = 0; k < K; ++k) {
        sum += wide_a.values<double>()[static_cast<size_t>(i / N * K + k)] *
               wide_b.values<double>()[static_cast<size_t>(k * N + i % N)];
      }
      expected.push_back(sum);
    }
    ASSERT_LE(difference(matmul(a, b), tensor_of(expected, {M, N})), 1e-5)
        << a.shape() << " times " << b.shape();
  }
}

}  // namespace
}  // namespace ingot::testing
