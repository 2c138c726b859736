#include "ingot/ops/losses.h"

#include <gtest/gtest.h>

#include <cmath>

#include "ingot/autograd/backward.h"
#include "ingot/autograd/record.h"
#include "ingot/ops/elementwise.h"
#include "ingot/ops/info_nce.h"
#include "ingot/tensor/factories.h"
#include "tests/support/op_case.h"

namespace ingot::testing {
namespace {

std::vector<Sample> pairs() {
  const auto pair = [](const char* about, const Shape& shape, double deviation) {
    return Sample{about, {random_tensor(shape, 1, deviation), random_tensor(shape, 2)}};
  };
  return {pair("several rows, odd size", {3, 5, 37}, 1), pair("one row", {9}, 1),
          pair("one column", {4, 1}, 1), pair("wide", {2, 19}, 4), pair("no rows", {0, 7}, 1)};
}

// One number per row of the last dimension.
template <class F>
Tensor by_row(const Tensor& a, const Tensor& b, F f) {
  Shape rows = a.shape();
  rows.erase(rows.rank() - 1);
  Tensor y = empty(rows, DType::f64);
  const auto size = static_cast<size_t>(a.size(-1));
  for (size_t r = 0; r < static_cast<size_t>(y.elements()); ++r) {
    y.mutable_values<double>()[r] =
        f(a.values<double>().subspan(r * size, size), b.values<double>().subspan(r * size, size));
  }
  return y;
}

double log_sum(std::span<const double> x) {
  double total = 0;
  for (const double v : x) {
    total += std::exp(v);
  }
  return std::log(total);
}

TEST(KlDivergence, PassesItsCase) {
  OpCase op;
  op.name = "kl_divergence";
  op.run = [](const TensorList& x) { return TensorList{kl_divergence(x[0], x[1])}; };
  op.reference = [](const TensorList& x) {
    return TensorList{by_row(x[0], x[1], [](std::span<const double> p, std::span<const double> q) {
      double sum = 0;
      for (size_t v = 0; v < p.size(); ++v) {
        const double log_p = p[v] - log_sum(p);
        sum += std::exp(log_p) * (log_p - (q[v] - log_sum(q)));
      }
      return sum;
    })};
  };
  op.samples = pairs();
  op.twice = true;
  op.refusals = {
      {[] {
         kl_divergence(zeros({2, 3}, DType::f32), zeros({3}, DType::f32));
       },
       "kl_divergence: p_logits and q_logits differ: p_logits is f32 [2, 3], q_logits is f32 [3]"}};
  check_op(op);
}

TEST(KlDivergence, TakesAbsentClassesAsZero) {
  Tensor p = tensor_of(std::vector<double>{0, -HUGE_VAL, 0, 0}, {1, 4});
  Tensor q = tensor_of(std::vector<double>{0, -HUGE_VAL, 0, -HUGE_VAL}, {1, 4});
  Tensor r = tensor_of(std::vector<double>{0, 0, 0, 0}, {1, 4});
  require_grad(p);
  require_grad(r);
  const Tensor kl = kl_divergence(p, r);
  EXPECT_NEAR(kl.item(), std::log(4.0 / 3), 1e-15);
  backward(kl);
  EXPECT_EQ(grad(p).values<double>()[1], 0);
  EXPECT_NEAR(grad(r).values<double>()[1], 0.25, 1e-15);
  EXPECT_NEAR(grad(r).values<double>()[0], 0.25 - 1.0 / 3, 1e-15);
  EXPECT_NEAR(kl_divergence(q, p).item(), std::log(1.5), 1e-15);
  EXPECT_EQ(kl_divergence(p, q).item(), HUGE_VAL);  // p gives weight to what q excludes
}

TEST(Mse, PassesItsCaseForEveryReduction) {
  for (const Reduction reduction : {Reduction::none, Reduction::sum, Reduction::mean}) {
    OpCase op;
    op.name = "mse";
    op.run = [=](const TensorList& x) { return TensorList{mse(x[0], x[1], reduction)}; };
    op.reference = [=](const TensorList& x) {
      Tensor squares = empty(x[0].shape(), DType::f64);
      double sum = 0;
      for (size_t i = 0; i < squares.values<double>().size(); ++i) {
        const double gap = x[0].values<double>()[i] - x[1].values<double>()[i];
        squares.mutable_values<double>()[i] = gap * gap;
        sum += gap * gap;
      }
      if (reduction == Reduction::none) {
        return TensorList{squares};
      }
      const auto count = static_cast<double>(x[0].elements());
      return TensorList{scalar(reduction == Reduction::mean ? sum / count : sum, DType::f64)};
    };
    op.samples = pairs();
    if (reduction == Reduction::mean) {
      op.samples.pop_back();
    }
    op.twice = true;
    op.refusals = {{[] {
                      mse(zeros({2, 3}, DType::f32), zeros({2, 1}, DType::f32), Reduction::sum);
                    },
                    "mse: a and b differ: a is f32 [2, 3], b is f32 [2, 1]"},
                   {[] { mse(zeros({0}, DType::f32), zeros({0}, DType::f32), Reduction::mean); },
                    "mse: the mean over no elements is undefined: a is [0]; use the sum"}};
    check_op(op);
  }
}

TEST(CosineSimilarity, PassesItsCase) {
  OpCase op;
  op.name = "cosine_similarity";
  op.run = [](const TensorList& x) { return TensorList{cosine_similarity(x[0], x[1])}; };
  op.reference = [](const TensorList& x) {
    return TensorList{by_row(x[0], x[1], [](std::span<const double> a, std::span<const double> b) {
      double ab = 0, aa = 0, bb = 0;
      for (size_t i = 0; i < a.size(); ++i) {
        ab += a[i] * b[i];
        aa += a[i] * a[i];
        bb += b[i] * b[i];
      }
      return ab / std::max(std::sqrt(aa) * std::sqrt(bb), 1e-8);
    })};
  };
  op.samples = pairs();
  op.twice = true;
  op.refusals = {{[] { cosine_similarity(zeros({2}, DType::f32), zeros({2}, DType::bf16)); },
                  "cosine_similarity: a and b differ: a is f32 [2], b is bf16 [2]"}};
  check_op(op);
}

TEST(InfoNce, IsTheLogarithmOfTheRowsWhereAllSimilaritiesAreEqual) {
  const Tensor same = full({5, 3}, 0.7, DType::f64);
  EXPECT_NEAR(info_nce(same, same, 0.1).item(), std::log(5.0), 1e-12);
  EXPECT_NEAR(info_nce(same, same * 3.0, 0.1, Contrast::both_ways).item(), std::log(5.0), 1e-12);
}

TEST(InfoNce, IsTheCrossEntropyOfScaledCosinesOnTheDiagonal) {
  const Tensor query = random_tensor({4, 6}, 1);
  const Tensor key = random_tensor({4, 6}, 2);
  double expected = 0;
  for (int64_t i = 0; i < 4; ++i) {
    double total = 0, own = 0;
    for (int64_t j = 0; j < 4; ++j) {
      double dot = 0, q = 0, k = 0;
      for (int64_t c = 0; c < 6; ++c) {
        const double a = query.values<double>()[static_cast<size_t>(i * 6 + c)];
        const double b = key.values<double>()[static_cast<size_t>(j * 6 + c)];
        dot += a * b;
        q += a * a;
        k += b * b;
      }
      const double s = dot / std::sqrt(q * k) / 0.2;
      total += std::exp(s);
      own = i == j ? s : own;
    }
    expected += (std::log(total) - own) / 4;
  }
  EXPECT_NEAR(info_nce(query, key, 0.2).item(), expected, 1e-12);
}

TEST(InfoNce, RefusesQueriesWithoutTheirKeys) {
  const Tensor q = zeros({2, 3}, DType::f32);
  expect_error(
      [&] {
        info_nce(q, zeros({3, 3}, DType::f32), 1);
      },
      "info_nce: every query needs its key: query is [2, 3], key is [3, 3]");
  expect_error([&] { info_nce(q, q, 0); }, "info_nce: the temperature must be above 0: got 0");
  expect_error(
      [&] {
        info_nce(q, zeros({2, 3}, DType::f64), 1);
      },
      "info_nce: takes queries and keys of one floating-point type: query is f32, key is f64");
  expect_error(
      [&] {
        scaled_cosines(q, zeros({2, 4}, DType::f32), 1);
      },
      "info_nce: takes queries [N, D] and keys [M, D]: query is [2, 3], key is [2, 4]");
}

TEST(CosineSimilarity, IsZeroForAZeroVector) {
  Tensor a = zeros({2, 3}, DType::f32);
  require_grad(a);
  const Tensor y = cosine_similarity(a, full({2, 3}, 1, DType::f32));
  EXPECT_TRUE(same_bits(y, zeros({2}, DType::f32)));
  backward(y, full({2}, 1, DType::f32));
  EXPECT_TRUE(std::isfinite(grad(a).values<float>()[0]));
}

}  // namespace
}  // namespace ingot::testing
