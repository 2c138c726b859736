#include "ingot/ops/softmax.h"

#include <gtest/gtest.h>

#include <cmath>

#include "ingot/tensor/copy.h"
#include "ingot/tensor/factories.h"
#include "tests/support/op_case.h"

namespace ingot::testing {
namespace {

// Row by row, as the formula reads.
Tensor softmax_by_formula(const Tensor& x, bool logarithm) {
  Tensor y = empty(x.shape(), DType::f64);
  const auto in = x.values<double>();
  auto out = y.mutable_values<double>();
  const auto size = static_cast<size_t>(x.size(-1));
  for (size_t row = 0; row + size <= in.size() && size > 0; row += size) {
    double most = -HUGE_VAL;
    for (size_t i = 0; i < size; ++i) {
      most = std::max(most, in[row + i]);
    }
    double total = 0;
    for (size_t i = 0; i < size; ++i) {
      total += std::exp(in[row + i] - most);
    }
    for (size_t i = 0; i < size; ++i) {
      const double shifted = in[row + i] - most;
      out[row + i] = logarithm ? shifted - std::log(total) : std::exp(shifted) / total;
    }
  }
  return y;
}

std::vector<Sample> samples() {
  return {{"several rows, odd size", {random_tensor({3, 5, 37}, 1)}},
          {"one element", {random_tensor({4, 1}, 2)}},
          {"large values", {random_tensor({2, 19}, 3, 300)}},
          {"no rows", {random_tensor({0, 7}, 4)}}};
}

TEST(Softmax, PassesItsCase) {
  OpCase op;
  op.name = "softmax";
  op.run = [](const TensorList& x) { return TensorList{softmax(x[0])}; };
  op.reference = [](const TensorList& x) { return TensorList{softmax_by_formula(x[0], false)}; };
  op.samples = samples();
  op.twice = true;
  op.refusals = {{[] {
                    softmax(zeros({2, 2}, DType::i64));
                  },
                  "softmax: takes floating-point tensors: got i64"},
                 {[] { softmax(scalar(1, DType::f32)); }, "softmax: takes at least one dimension"}};
  check_op(op);
}

TEST(Softmax, ANotANumberMakesItsRowNotANumber) {
  for (const DType dtype : {DType::f32, DType::f64}) {
    Tensor x = zeros({2, 37}, DType::f64);
    x.mutable_values<double>()[5] = std::nan("");
    for (const Tensor& y : {softmax(converted(x, dtype)), log_softmax(converted(x, dtype))}) {
      const Tensor wide = converted(y, DType::f64);
      for (size_t i = 0; i < 74; ++i) {
        EXPECT_EQ(std::isnan(wide.values<double>()[i]), i < 37) << name(dtype) << ", element " << i;
      }
    }
  }
}

TEST(LogSoftmax, PassesItsCase) {
  OpCase op;
  op.name = "log_softmax";
  op.run = [](const TensorList& x) { return TensorList{log_softmax(x[0])}; };
  op.reference = [](const TensorList& x) { return TensorList{softmax_by_formula(x[0], true)}; };
  op.samples = samples();
  op.twice = true;
  check_op(op);
}

}  // namespace
}  // namespace ingot::testing
