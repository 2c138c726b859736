#include "ingot/ops/reduce.h"

#include <gtest/gtest.h>
#include <omp.h>

#include <cmath>
#include <limits>

#include "ingot/autograd/backward.h"
#include "ingot/autograd/record.h"
#include "ingot/ops/shape.h"
#include "ingot/tensor/copy.h"
#include "ingot/tensor/factories.h"
#include "tests/support/op_case.h"

namespace ingot::testing {
namespace {

using Lane = std::vector<double>;
using Run = std::function<Tensor(const Tensor&, int64_t dim, Keep)>;

// f of every lane along `dim`, one lane at a time.
Tensor by_lane(const Tensor& x, int64_t dim, Keep keep,
               const std::function<double(const Lane&)>& f) {
  const Tensor from = dense(transpose(x, dim, -1));
  const auto size = static_cast<size_t>(from.size(-1));
  Shape shape = from.shape();
  shape[x.rank() - 1] = 1;
  Tensor y = empty(shape, DType::f64);
  auto out = y.mutable_values<double>();
  for (size_t i = 0; i < out.size(); ++i) {
    const auto lane = from.values<double>().subspan(i * size, size);
    out[i] = f(Lane(lane.begin(), lane.end()));
  }
  const Tensor kept = transpose(y, dim, -1);
  return dense(keep == Keep::yes ? kept : squeeze(kept, dim));
}

double total(const Lane& lane) {
  double sum = 0;
  for (const double v : lane) {
    sum += v;
  }
  return sum;
}

double variance(const Lane& lane, double correction) {
  const double mean = total(lane) / static_cast<double>(lane.size());
  double sum = 0;
  for (const double v : lane) {
    sum += (v - mean) * (v - mean);
  }
  return sum / (static_cast<double>(lane.size()) - correction);
}

double log_sum_exp(const Lane& lane) {
  double most = -HUGE_VAL;
  for (const double v : lane) {
    most = std::max(most, v);
  }
  double sum = 0;
  for (const double v : lane) {
    sum += std::exp(v - most);
  }
  return std::isinf(most) ? most : most + std::log(sum);
}

struct Reduction {
  const char* name;
  Run run;
  std::function<double(const Lane&)> f;
  bool takes_empty = false;  // lanes without elements
};

std::vector<Reduction> reductions() {
  return {
      {"sum", [](const Tensor& x, int64_t d, Keep k) { return sum(x, d, k); }, total, true},
      {"mean", [](const Tensor& x, int64_t d, Keep k) { return mean(x, d, k); },
       [](const Lane& lane) { return total(lane) / static_cast<double>(lane.size()); }},
      {"max", [](const Tensor& x, int64_t d, Keep k) { return max(x, d, k); },
       [](const Lane& lane) { return *std::max_element(lane.begin(), lane.end()); }},
      {"min", [](const Tensor& x, int64_t d, Keep k) { return min(x, d, k); },
       [](const Lane& lane) { return *std::min_element(lane.begin(), lane.end()); }},
      {"var", [](const Tensor& x, int64_t d, Keep k) { return var(x, d, 1, k); },
       [](const Lane& lane) { return variance(lane, 1); }},
      {"population variance", [](const Tensor& x, int64_t d, Keep k) { return var(x, d, 0, k); },
       [](const Lane& lane) { return variance(lane, 0); }},
      {"logsumexp", [](const Tensor& x, int64_t d, Keep k) { return logsumexp(x, d, k); },
       log_sum_exp, true},
  };
}

TEST(Reduce, ReductionsPassTheirCases) {
  for (const Reduction& reduction : reductions()) {
    for (const int64_t dim : {0, 1, -1}) {
      for (const Keep keep : {Keep::no, Keep::yes}) {
        OpCase op;
        op.name = concat(reduction.name, " over ", dim);
        op.run = [&](const TensorList& x) { return TensorList{reduction.run(x[0], dim, keep)}; };
        op.reference = [&](const TensorList& x) {
          return TensorList{by_lane(x[0], dim, keep, reduction.f)};
        };
        op.samples = {{"odd sizes", {random_tensor({5, 3, 37}, 1)}},
                      {"one lane", {random_tensor({2, 2, 2}, 2)}}};
        if (reduction.takes_empty) {
          op.samples.push_back({"empty", {random_tensor({0, 3, 0}, 3)}});
        }
        op.twice = true;
        op.refusals = {{[&] { reduction.run(zeros({2}, DType::f32), 1, keep); },
                        "dimension 1 is outside a shape of rank 1: [2]"}};
        check_op(op);
      }
    }
  }
}

TEST(Reduce, LargeReductionsAgreeWithALoop) {
  for (const Shape& shape :
       {Shape{3, 100003}, Shape{20011, 7}, Shape{2, 5000, 130}, Shape{700, 1500}}) {
    const Tensor x = normal(shape, 0.5, 1, {3, 0, 0}, DType::f32);
    const Tensor wide = converted(x, DType::f64);
    for (const Reduction& reduction : reductions()) {
      for (int64_t dim = 0; dim < shape.rank(); ++dim) {
        EXPECT_LE(
            difference(reduction.run(x, dim, Keep::no), by_lane(wide, dim, Keep::no, reduction.f)),
            1e-6)
            << reduction.name << " over " << dim << " of " << shape;
      }
    }
  }
}

TEST(Reduce, SumsDoNotDependOnTheNumberOfThreads) {
  const int threads = omp_get_max_threads();
  for (const Shape& shape : {Shape{3, 100003}, Shape{20011, 7}, Shape{300, 300}}) {
    const Tensor x = normal(shape, 0, 1, {4, 0, 0}, DType::f32);
    for (int64_t dim = 0; dim < 2; ++dim) {
      const Tensor expected = sum(x, dim);
      omp_set_num_threads(1);
      EXPECT_TRUE(same_bits(sum(x, dim), expected)) << shape;
      omp_set_num_threads(3);
      EXPECT_TRUE(same_bits(sum(x, dim), expected)) << shape;
      omp_set_num_threads(threads);
    }
  }
}

TEST(Reduce, OverEverythingGivesAScalar) {
  const Tensor x = random_tensor({3, 5, 7}, 1);
  const Tensor flat = reshape(x, {105});
  EXPECT_EQ(sum(x).shape(), Shape{});
  EXPECT_DOUBLE_EQ(sum(x).item(), sum(flat, 0).item());
  EXPECT_DOUBLE_EQ(mean(x).item(), sum(x).item() / 105);
  EXPECT_EQ(sum(transpose(x, 0, 2)).shape(), Shape{});
  EXPECT_EQ(sum(zeros({0, 3}, DType::f32)).item(), 0);
  EXPECT_TRUE(std::isnan(mean(zeros({0, 3}, DType::f32)).item()));
}

TEST(Reduce, IntegersAndBoolsSumToI64) {
  const Tensor bools = tensor_of(std::vector<uint8_t>{1, 0, 1, 1}, {2, 2});
  EXPECT_EQ(sum(cast(bools, DType::bool_)).item(), 3);
  EXPECT_EQ(sum(cast(bools, DType::bool_)).dtype(), DType::i64);
  EXPECT_TRUE(
      same_bits(sum(cast(bools, DType::i32), 0), tensor_of(std::vector<int64_t>{2, 1}, {2})));
  expect_error([] { mean(zeros({2}, DType::i64)); }, "mean: takes floating-point tensors: got i64");
}

TEST(Reduce, ExtremesTakeTheFirstOfEqualsAndNotANumberFirst) {
  const auto row = [](std::vector<float> v) {
    const auto size = static_cast<int64_t>(v.size());
    return tensor_of(v, {size});
  };
  EXPECT_EQ(argmax(row({1, 3, 3, 2}), 0).item(), 1);
  EXPECT_EQ(argmax(row({1, NAN, 3, NAN}), 0).item(), 1);
  EXPECT_TRUE(std::isnan(max(row({1, NAN, 3}), 0).item()));
  EXPECT_TRUE(std::isnan(min(row({1, NAN, 3}), 0).item()));
  EXPECT_EQ(argmax(tensor_of(std::vector<int64_t>{4, 9, 9}, {3}), 0).item(), 1);
  EXPECT_EQ(argmax(cast(row({1, 5, 2}), DType::bf16), 0).item(), 1);
  EXPECT_EQ(argmax(zeros({3, 4, 2}, DType::f32), 1, Keep::yes).shape(), (Shape{3, 1, 2}));
  Tensor x = converted(row({2, 5, 5, 1}), DType::f64);
  require_grad(x);
  const Tensor dx = gradients({max(x, 0)}, {x}, {scalar(1, DType::f64)})[0];
  EXPECT_EQ(difference(dx, tensor_of(std::vector<double>{0, 1, 0, 0}, {4})), 0);
  expect_error([] { max(zeros({2, 0}, DType::f32), 1); }, "max: dimension 1 of [2, 0] is empty");
  expect_error([] { argmax(zeros({0}, DType::f32), 0); }, "argmax: dimension 0 of [0] is empty");
}

TEST(Reduce, LogSumExpKeepsToItsLimits) {
  const double infinity = std::numeric_limits<double>::infinity();
  Tensor x = tensor_of(std::vector<double>{-infinity, -infinity, 1000, 1000, -infinity, 3}, {3, 2});
  require_grad(x);
  const Tensor y = logsumexp(x, 1);
  EXPECT_EQ(difference(y, tensor_of(std::vector<double>{-infinity, 1000 + std::log(2.0), 3}, {3})),
            0);
  const Tensor dx = gradients({y}, {x}, {full({3}, 1, DType::f64)})[0];
  EXPECT_LE(difference(dx, tensor_of(std::vector<double>{0, 0, 0.5, 0.5, 0, 1}, {3, 2})), 1e-12);
  EXPECT_EQ(logsumexp(tensor_of(std::vector<float>{1, HUGE_VALF}, {2}), 0).item(), infinity);
  EXPECT_TRUE(std::isnan(logsumexp(tensor_of(std::vector<float>{1, NAN}, {2}), 0).item()));
}

TEST(Reduce, VarianceOfLargeNumbersKeepsItsDigits) {
  const Tensor x = tensor_of(std::vector<float>{10001, 10002, 10003, 10004}, {4});
  EXPECT_NEAR(var(x, 0).item(), 5.0 / 3, 1e-6);
  expect_error(
      [] { var(zeros({1}, DType::f32), 0); },
      "var: needs more elements than the correction: dimension 0 of [1] has 1, correction is 1");
}

TEST(CumSum, PassesItsCase) {
  for (const int64_t dim : {0, 1}) {
    OpCase op;
    op.name = concat("cumsum over ", dim);
    op.run = [=](const TensorList& x) { return TensorList{cumsum(x[0], dim)}; };
    op.reference = [=](const TensorList& x) {
      TensorList parts;
      for (int64_t i = 1; i <= x[0].size(dim); ++i) {
        parts.push_back(by_lane(slice(x[0], dim, 0, i), dim, Keep::yes, total));
      }
      return TensorList{parts.empty() ? x[0] : concat(parts, dim)};
    };
    op.samples = {{"odd sizes", {random_tensor({5, 7, 3}, 1)}},
                  {"empty", {random_tensor({0, 0}, 2)}}};
    op.twice = true;
    op.refusals = {{[] { cumsum(zeros({2}, DType::i32), 0); },
                    "cumsum: takes floating-point and i64 tensors: got i32"}};
    check_op(op);
  }
  EXPECT_TRUE(same_bits(cumsum(tensor_of(std::vector<int64_t>{1, 2, 3}, {3}), 0),
                        tensor_of(std::vector<int64_t>{1, 3, 6}, {3})));
}

TEST(Norm, PassesItsCase) {
  OpCase op;
  op.name = "norm";
  op.run = [](const TensorList& x) { return TensorList{norm(x[0])}; };
  op.reference = [](const TensorList& x) {
    double squares = 0;
    for (const double v : x[0].values<double>()) {
      squares += v * v;
    }
    return TensorList{scalar(std::sqrt(squares), DType::f64)};
  };
  op.samples = {{"odd size", {random_tensor({3, 37}, 1)}},
                {"one element", {random_tensor({1}, 2)}}};
  op.twice = true;
  check_op(op);
  EXPECT_EQ(norm(zeros({0}, DType::f32)).item(), 0);
  EXPECT_EQ(norm(zeros({2}, DType::bf16)).dtype(), DType::f32);
  EXPECT_NEAR(norm(full({4}, 1e30, DType::f32)).item() / 2e30, 1, 1e-6);  // squares beyond f32
  Tensor x = zeros({3}, DType::f32);
  require_grad(x);
  EXPECT_EQ(
      difference(gradients({norm(x)}, {x}, {scalar(1, DType::f32)})[0], zeros({3}, DType::f64)), 0);
}

}  // namespace
}  // namespace ingot::testing
