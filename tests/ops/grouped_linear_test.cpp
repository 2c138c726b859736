#include "ingot/ops/grouped_linear.h"

#include <gtest/gtest.h>

#include "ingot/autograd/backward.h"
#include "ingot/autograd/record.h"
#include "ingot/device/flops.h"
#include "ingot/tensor/factories.h"
#include "tests/support/op_case.h"

namespace ingot::testing {
namespace {

// Each row by the map of its range, in plain loops.
Tensor by_loops(const Tensor& x, const TensorList& weights, const std::vector<int64_t>& counts) {
  const int64_t in = x.size(1);
  const int64_t out = weights[0].size(0);
  Tensor y = empty({x.size(0), out}, DType::f64);
  auto ys = y.mutable_values<double>();
  int64_t n = 0;
  for (size_t e = 0; e < weights.size(); ++e) {
    for (const int64_t end = n + counts[e]; n < end; ++n) {
      for (int64_t o = 0; o < out; ++o) {
        double sum = 0;
        for (int64_t i = 0; i < in; ++i) {
          sum += x.values<double>()[static_cast<size_t>(n * in + i)] *
                 weights[e].values<double>()[static_cast<size_t>(o * in + i)];
        }
        ys[static_cast<size_t>(n * out + o)] = sum;
      }
    }
  }
  return y;
}

Sample sample_of(const std::string& about, const std::vector<int64_t>& counts, int64_t in,
                 int64_t out) {
  int64_t rows = 0;
  for (const int64_t count : counts) {
    rows += count;
  }
  Sample sample{about, {random_tensor({rows, in}, 1)}};
  for (size_t e = 0; e < counts.size(); ++e) {
    sample.inputs.push_back(random_tensor({out, in}, 2 + e));
  }
  sample.inputs.push_back(tensor_of(counts, {static_cast<int64_t>(counts.size())}));
  return sample;
}

TensorList weights_in(const TensorList& x) { return {x.begin() + 1, x.end() - 1}; }

TEST(GroupedLinear, PassesItsCase) {
  const Tensor x = zeros({5, 3}, DType::f32);
  const Tensor w = zeros({2, 3}, DType::f32);
  const auto call = [&](const TensorList& weights, const std::vector<int64_t>& counts) {
    return [=] {
      grouped_linear(x, weights, tensor_of(counts, {static_cast<int64_t>(counts.size())}));
    };
  };
  OpCase op;
  op.name = "grouped_linear";
  op.run = [](const TensorList& in) {
    return TensorList{grouped_linear(in[0], weights_in(in), in.back())};
  };
  op.reference = [](const TensorList& in) {
    const auto counts = in.back().values<int64_t>();
    return TensorList{by_loops(in[0], weights_in(in), {counts.begin(), counts.end()})};
  };
  op.samples = {sample_of("uneven", {3, 1, 9, 2}, 7, 5),
                sample_of("one without rows", {4, 0, 6}, 5, 3),
                sample_of("all to one", {0, 11, 0}, 3, 4), sample_of("no rows", {0, 0}, 3, 2),
                sample_of("one map", {6}, 4, 1)};
  op.refusals = {
      {call({w, w}, {2, 2}), "they sum to 4, x has 5 rows"},
      {call({w, w}, {2, 4}), "count 1 is 4, 3 of 5 rows are left"},
      {call({w, w}, {7, -2}), "count 0 is 7, 5 of 5 rows are left"},
      {call({w, w}, {6, -1}), "count 0 is 6"},
      {call({w}, {2, 3}), "takes one count a weight: 1 weights, counts is [2]"},
      {call({w, zeros({2, 4}, DType::f32)}, {2, 3}), "weight 1 is [2, 4]"},
      {call({w, zeros({2, 3}, DType::f64)}, {2, 3}), "dtypes differ: x is f32, weight 1 is f64"},
      {[&] { grouped_linear(x, {w}, tensor_of<int32_t>({5}, {1})); }, "takes counts [E] of i64"},
      {[&] {
         grouped_linear(zeros({2, 1, 3}, DType::f32), {w}, tensor_of<int64_t>({2}, {1}));
       },
       "takes x [N, In]"},
      {[&] {
         grouped_linear(zeros({5, 3}, DType::i64), {w}, tensor_of<int64_t>({5}, {1}));
       },
       "takes floating-point tensors"},
  };
  check_op(op);
}

TEST(GroupedLinear, GivesAMapWithoutRowsAGradientOfZero) {
  Tensor idle = random_tensor({2, 3}, 1);
  Tensor busy = random_tensor({2, 3}, 2);
  require_grad(idle);
  require_grad(busy);
  const Tensor x = random_tensor({4, 3}, 3);
  backward(grouped_linear(x, {idle, busy}, tensor_of<int64_t>({0, 4}, {2})),
           random_tensor({4, 2}, 4));
  EXPECT_EQ(difference(grad(idle), zeros({2, 3}, DType::f64)), 0);
  EXPECT_GT(difference(grad(busy), zeros({2, 3}, DType::f64)), 0);
}

TEST(GroupedLinear, CountsTheSameFlopsWhateverTheCountsOnMetaToo) {
  const auto flops = [](const std::vector<int64_t>& counts, Device device) {
    Tensor x = zeros({12, 5}, DType::f32, device);
    TensorList weights;
    for (size_t e = 0; e < counts.size(); ++e) {
      weights.push_back(zeros({4, 5}, DType::f32, device));
      require_grad(weights.back());
    }
    require_grad(x);
    const int64_t before = counted_flops();
    const Tensor places =
        device == meta_device ? zeros({3}, DType::i64, device) : tensor_of(counts, {3});
    backward(grouped_linear(x, weights, places), zeros({12, 4}, DType::f32, device));
    return counted_flops() - before;
  };
  EXPECT_EQ(flops({4, 4, 4}, cpu_device), 3 * 2 * 12 * 5 * 4);
  EXPECT_EQ(flops({0, 10, 2}, cpu_device), 3 * 2 * 12 * 5 * 4);
  EXPECT_EQ(flops({0, 0, 0}, meta_device), 3 * 2 * 12 * 5 * 4);
}

}  // namespace
}  // namespace ingot::testing
