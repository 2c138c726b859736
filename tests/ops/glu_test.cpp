#include "ingot/ops/glu.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "ingot/autograd/record.h"
#include "ingot/ops/shape.h"
#include "ingot/tensor/copy.h"
#include "ingot/tensor/factories.h"
#include "tests/support/op_case.h"

namespace ingot::testing {
namespace {

double activation_by_formula(double x, Gate gate) {
  switch (gate) {
    case Gate::silu: return x / (1 + std::exp(-x));
    case Gate::gelu: return 0.5 * x * (1 + std::erf(x / std::numbers::sqrt2));
    case Gate::gelu_tanh:
      return 0.5 * x *
             (1 + std::tanh(std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x)));
    case Gate::sigmoid: return 1 / (1 + std::exp(-x));
    case Gate::relu: return x > 0 ? x : 0;
  }
  return NAN;
}

Tensor gated_by_formula(const Tensor& gate, const Tensor& up, Gate activation) {
  Tensor y = empty(gate.shape(), DType::f64);
  auto out = y.mutable_values<double>();
  for (size_t i = 0; i < out.size(); ++i) {
    out[i] = activation_by_formula(gate.values<double>()[i], activation) * up.values<double>()[i];
  }
  return y;
}

void check_gate(const char* name, Gate gate) {
  OpCase op;
  op.name = name;
  op.run = [=](const TensorList& x) { return TensorList{gated(x[0], x[1], gate)}; };
  op.reference = [=](const TensorList& x) {
    return TensorList{gated_by_formula(x[0], x[1], gate)};
  };
  op.samples = {
      {"several rows, odd size", {random_tensor({3, 5, 37}, 1), random_tensor({3, 5, 37}, 2)}},
      {"long rows", {random_tensor({2, 4099}, 3), random_tensor({2, 4099}, 4)}},
      {"one element", {random_tensor({1, 1}, 5), random_tensor({1, 1}, 6)}},
      {"a scalar", {random_tensor({}, 5), random_tensor({}, 6)}},
      {"large values", {random_tensor({4, 19}, 7, 30), random_tensor({4, 19}, 8)}},
      {"no rows", {random_tensor({0, 7}, 9), random_tensor({0, 7}, 10)}},
      {"no columns", {random_tensor({7, 0}, 9), random_tensor({7, 0}, 10)}}};
  check_op(op);
}

TEST(Gated, PassesItsCaseWithSilu) { check_gate("gated silu", Gate::silu); }
TEST(Gated, PassesItsCaseWithGelu) { check_gate("gated gelu", Gate::gelu); }
TEST(Gated, PassesItsCaseWithTanhGelu) { check_gate("gated gelu_tanh", Gate::gelu_tanh); }
TEST(Gated, PassesItsCaseWithSigmoid) { check_gate("gated sigmoid", Gate::sigmoid); }
TEST(Gated, PassesItsCaseWithRelu) { check_gate("gated relu", Gate::relu); }

TEST(Gated, ReadsHalvesOfAProjectionInPlace) {
  const Tensor both = random_tensor({3, 5, 14}, 1);
  const Tensor gate = slice(both, -1, 0, 7);
  const Tensor up = slice(both, -1, 7, 14);
  const int64_t before = allocator(cpu_device).stats().allocations;
  const Tensor y = gated(gate, up, Gate::silu);
  EXPECT_EQ(allocator(cpu_device).stats().allocations - before, 1);
  EXPECT_TRUE(same_bits(y, gated(copy_of(gate), copy_of(up), Gate::silu)));
}

TEST(Gated, RefusesUnequalInputs) {
  expect_error(
      [] {
        gated(zeros({2, 3}, DType::f32), zeros({3, 2}, DType::f32), Gate::silu);
      },
      "gated: gate and up differ: gate is f32 [2, 3], up is f32 [3, 2]");
  expect_error([] { gated(zeros({2}, DType::f32), zeros({2}, DType::bf16), Gate::silu); },
               "gated: gate and up differ: gate is f32 [2], up is bf16 [2]");
  expect_error([] { gated(zeros({2}, DType::i64), zeros({2}, DType::i64), Gate::silu); },
               "gated: takes floating-point tensors: got i64");
}

}  // namespace
}  // namespace ingot::testing
