#include "ingot/ops/elementwise.h"

#include <gtest/gtest.h>

#include <cmath>

#include "ingot/autograd/backward.h"
#include "ingot/autograd/record.h"
#include "ingot/base/philox.h"
#include "ingot/ops/shape.h"
#include "ingot/tensor/copy.h"
#include "ingot/tensor/factories.h"
#include "ingot/tensor/layout.h"
#include "tests/support/op_case.h"

namespace ingot::testing {
namespace {

template <class T>
Tensor values_of(std::initializer_list<T> values, const Shape& shape) {
  return tensor_of(std::vector<T>(values), shape);
}

using Scalar = std::function<double(double, double)>;
using Operation = std::function<Tensor(const Tensor&, const Tensor&)>;

// The element of x that broadcasting pairs with position `at` (row-major) of `shape`.
double element(const Tensor& x, const Shape& shape, int64_t at) {
  int64_t offset = x.offset();
  for (int64_t i = 1; i <= shape.rank(); ++i) {
    const int64_t size = shape[shape.rank() - i];
    if (i <= x.rank() && x.size(-i) != 1) {
      offset += at % size * x.strides()[x.rank() - i];
    }
    at /= size;
  }
  return x.aliased({}, {}, offset).item();
}

// f over every pair, one element at a time.
Tensor naive(const Tensor& a, const Tensor& b, const Scalar& f) {
  const Shape shape = broadcast(a.shape(), b.shape(), "naive");
  Tensor y = empty(shape, DType::f64);
  auto out = y.mutable_values<double>();
  for (size_t i = 0; i < out.size(); ++i) {
    const auto at = static_cast<int64_t>(i);
    out[i] = f(element(a, shape, at), element(b, shape, at));
  }
  return y;
}

struct Named {
  const char* name;
  Operation run;
  Scalar f;
};

std::vector<Named> operations() {
  return {{"add", add, [](double a, double b) { return a + b; }},
          {"sub", sub, [](double a, double b) { return a - b; }},
          {"mul", mul, [](double a, double b) { return a * b; }},
          {"div", div, [](double a, double b) { return a / b; }},
          {"maximum", maximum, [](double a, double b) { return std::max(a, b); }},
          {"minimum", minimum, [](double a, double b) { return std::min(a, b); }}};
}

// Numbers away from 0, so that quotients and their derivatives stay moderate.
Tensor moderate(const Shape& shape, uint64_t seed) {
  return uniform(shape, 0.5, 2, {seed, 0, 0}, DType::f64);
}

TEST(Arithmetic, PassesItsCases) {
  for (const Named& operation : operations()) {
    OpCase op;
    op.name = operation.name;
    op.run = [&](const TensorList& x) { return TensorList{operation.run(x[0], x[1])}; };
    op.reference = [&](const TensorList& x) { return TensorList{naive(x[0], x[1], operation.f)}; };
    op.samples = {{"equal shapes, odd size", {moderate({3, 37}, 1), moderate({3, 37}, 2)}},
                  {"a row against a matrix", {moderate({5, 19}, 3), moderate({19}, 4)}},
                  {"a column against a matrix", {moderate({5, 1}, 5), moderate({5, 33}, 6)}},
                  {"outer", {moderate({4, 1, 3}, 7), moderate({1, 6, 1}, 8)}},
                  {"a scalar", {moderate({}, 9), moderate({2, 5}, 10)}},
                  {"two scalars", {moderate({}, 11), moderate({}, 12)}},
                  {"empty", {moderate({0, 4}, 13), moderate({1, 4}, 14)}}};
    op.twice = true;
    op.refusals = {
        {[&] { operation.run(zeros({2}, DType::f32), zeros({2}, DType::bf16)); },
         std::string(operation.name) + ": dtypes differ: a is f32, b is bf16; cast one of them"},
        {[&] { operation.run(zeros({2}, DType::f32), zeros({3}, DType::f32)); },
         std::string(operation.name) + ": shapes do not broadcast: a is [2], b is [3]"},
        {[&] { operation.run(zeros({2}, DType::f32), zeros({2}, DType::f32, meta_device)); },
         std::string(operation.name) + ": devices differ: a is on cpu, b is on meta"},
        {[&] { operation.run(zeros({2}, DType::u8), zeros({2}, DType::u8)); },
         ": got u8; cast it"}};
    check_op(op);
  }
}

TEST(Arithmetic, WithANumberPassesItsCases) {
  const std::vector<std::pair<Operation, Scalar>> cases = {
      {[](const Tensor& x, const Tensor&) { return x + 1.5; },
       [](double x, double) { return x + 1.5; }},
      {[](const Tensor& x, const Tensor&) { return x - 1.5; },
       [](double x, double) { return x - 1.5; }},
      {[](const Tensor& x, const Tensor&) { return x * 1.5; },
       [](double x, double) { return x * 1.5; }},
      {[](const Tensor& x, const Tensor&) { return x / 1.5; },
       [](double x, double) { return x / 1.5; }},
      {[](const Tensor& x, const Tensor&) { return 1.5 + x; },
       [](double x, double) { return 1.5 + x; }},
      {[](const Tensor& x, const Tensor&) { return 1.5 - x; },
       [](double x, double) { return 1.5 - x; }},
      {[](const Tensor& x, const Tensor&) { return 1.5 * x; },
       [](double x, double) { return 1.5 * x; }},
      {[](const Tensor& x, const Tensor&) { return 1.5 / x; },
       [](double x, double) { return 1.5 / x; }},
      {[](const Tensor& x, const Tensor&) { return -x; }, [](double x, double) { return -x; }}};
  for (size_t i = 0; i < cases.size(); ++i) {
    const auto& [run, f] = cases[i];
    OpCase op;
    op.name = "with a number, case " + std::to_string(i);
    op.run = [&, call = run](const TensorList& x) { return TensorList{call(x[0], x[0])}; };
    op.reference = [&, g = f](const TensorList& x) { return TensorList{naive(x[0], x[0], g)}; };
    op.samples = {{"odd size", {moderate({3, 37}, 20 + i)}}, {"empty", {moderate({0}, 1)}}};
    op.twice = true;
    check_op(op);
  }
}

// A shape of rank ≤ 4 with sizes in 0…9, small ones often.
Shape random_shape(const Philox& random, uint64_t& at) {
  Shape shape;
  const uint32_t rank = random.word(at++) % 5;
  for (uint32_t i = 0; i < rank; ++i) {
    const uint32_t draw = random.word(at++) % 12;
    shape.push_back(draw < 10 ? draw : 1);
  }
  return shape;
}

// Either `shape` with some sizes 1 and leading dimensions dropped, so that both broadcast together.
Shape shrunk(Shape shape, const Philox& random, uint64_t& at) {
  for (int64_t i = 0; i < shape.rank(); ++i) {
    shape[i] = random.word(at++) % 3 == 0 ? 1 : shape[i];
  }
  while (shape.rank() > 0 && random.word(at++) % 4 == 0) {
    shape.erase(0);
  }
  return shape;
}

TEST(Arithmetic, AgreesWithADoubleLoopOnRandomShapesAndLayouts) {
  const Philox random({2026, 0, 0});
  uint64_t at = 0;
  int64_t empty_ones = 0;
  for (uint64_t round = 0; round < 300; ++round) {
    const Shape whole = random_shape(random, at);
    const Tensor a = random_layout(shrunk(whole, random, at), 2 * round, random.word(at++) % 3);
    const Tensor b = random_layout(shrunk(whole, random, at), 2 * round + 1, random.word(at++) % 3);
    for (const Named& operation : operations()) {
      const Tensor y = operation.run(a, b);
      empty_ones += y.elements() == 0 ? 1 : 0;
      ASSERT_LE(difference(y, naive(a, b, operation.f)), 1e-5)
          << operation.name << ": a is " << a.shape() << ", b is " << b.shape();
    }
  }
  EXPECT_GT(empty_ones, 20);  // sizes of 0 did occur
}

TEST(Arithmetic, LongRunsAgreeWithADoubleLoop) {
  const Tensor a = uniform({3, 50001}, 0.5, 2, {1, 0, 0}, DType::f32);
  const Tensor row = uniform({50001}, 0.5, 2, {2, 0, 0}, DType::f32);
  for (const Named& operation : operations()) {
    EXPECT_LE(difference(operation.run(a, row), naive(a, row, operation.f)), 1e-6)
        << operation.name;
  }
}

TEST(Arithmetic, IntegersAreExactAndWrapAround) {
  const Tensor a = values_of<int64_t>({7, -3, INT64_MAX}, {3});
  const Tensor b = values_of<int64_t>({2, 5, 1}, {3});
  const auto expect = [](const Tensor& y, std::vector<int64_t> wanted) {
    EXPECT_TRUE(same_bits(y, tensor_of(wanted, {3})));
  };
  expect(a + b, {9, 2, INT64_MIN});
  expect(a - b, {5, -8, INT64_MAX - 1});
  expect(a * b, {14, -15, INT64_MAX});
  expect(maximum(a, b), {7, 5, INT64_MAX});
  expect(minimum(a, b), {2, -3, 1});
  expect(b * 3.0 - 1.0, {5, 14, 2});
  const Tensor small = values_of<int32_t>({INT32_MAX}, {1}) + 1.0;
  EXPECT_EQ(small.item(), INT32_MIN);
  expect_error([&] { a / b; }, "div: takes floating-point tensors: got i64; cast it");
  expect_error([&] { a * 0.5; }, "mul: 0.5 is no i64; cast the tensor first");
}

TEST(Arithmetic, NotANumberPassesThroughMaximumAndMinimum) {
  const double nan = std::nan("");
  const Tensor a = values_of<float>({1, NAN, 3}, {3});
  const Tensor b = values_of<float>({NAN, 2, 2}, {3});
  EXPECT_EQ(difference(maximum(a, b), values_of<double>({nan, nan, 3}, {3})), 0);
  EXPECT_EQ(difference(minimum(a, b), values_of<double>({nan, nan, 2}, {3})), 0);
}

TEST(Arithmetic, MaximumHalvesTheGradientBetweenEquals) {
  Tensor a = values_of<double>({1, 2, 3}, {3});
  Tensor b = values_of<double>({2, 2, 2}, {3});
  require_grad(a);
  require_grad(b);
  const TensorList both = gradients({maximum(a, b)}, {a, b}, {full({3}, 1, DType::f64)});
  EXPECT_EQ(difference(both[0], values_of<double>({0, 0.5, 1}, {3})), 0);
  EXPECT_EQ(difference(both[1], values_of<double>({1, 0.5, 0}, {3})), 0);
}

TEST(Arithmetic, HalfTypesAreRoundedOnce) {
  // 1 + 2⁻⁸ is halfway between two bf16 numbers: 256 + 1.5 · 2⁰ must round up in one step.
  const Tensor a = converted(values_of<float>({256}, {1}), DType::bf16);
  const Tensor b = converted(values_of<float>({1.5}, {1}), DType::bf16);
  EXPECT_EQ((a + b).item(), 258);
  EXPECT_EQ((a + 1.0).item(), 256);  // a tie goes to even
}

TEST(Comparison, AgreesWithADoubleLoop) {
  const Tensor a = values_of<float>({1, 2, 3, NAN, -0.0F, 5}, {2, 3});
  const Tensor b = values_of<float>({2, 2, 2, NAN, 0, -5}, {2, 3});
  const std::vector<std::pair<Operation, Scalar>> cases = {
      {equal, [](double p, double q) { return p == q; }},
      {not_equal, [](double p, double q) { return p != q; }},
      {less, [](double p, double q) { return p < q; }},
      {less_equal, [](double p, double q) { return p <= q; }},
      {greater, [](double p, double q) { return p > q; }},
      {greater_equal, [](double p, double q) { return p >= q; }}};
  for (const auto& [run, f] : cases) {
    EXPECT_EQ(run(a, b).dtype(), DType::bool_);
    EXPECT_EQ(difference(run(a, b), naive(a, b, f)), 0);
    const Tensor column = values_of<float>({2, 0}, {2, 1});
    EXPECT_EQ(difference(run(a, column), naive(a, column, f)), 0);
    for (const DType dtype : {DType::bf16, DType::f16, DType::f64}) {
      EXPECT_EQ(difference(run(converted(a, dtype), converted(b, dtype)), naive(a, b, f)), 0);
    }
    const Tensor ints = values_of<int64_t>({1, 2, 3}, {3});
    const Tensor two = values_of<int64_t>({2}, {1});
    EXPECT_EQ(difference(run(ints, two), naive(ints, two, f)), 0);
  }
  expect_error([&] { equal(a, values_of<int64_t>({1}, {1})); },
               "equal: dtypes differ: a is f32, b is i64");
}

TEST(Where, PassesItsCase) {
  const Tensor condition = less(random_tensor({3, 1, 7}, 1), zeros({}, DType::f64));
  OpCase op;
  op.name = "where";
  op.run = [&](const TensorList& x) {
    const Tensor c = x[0].device() == meta_device ? moved(condition, meta_device) : condition;
    return TensorList{where(c, x[0], x[1])};
  };
  op.reference = [&](const TensorList& x) {
    const Tensor c = converted(condition, DType::f64);
    return TensorList{add(mul(c, x[0]), mul(1.0 - c, x[1]))};
  };
  op.samples = {{"broadcasting all three", {random_tensor({5, 7}, 2), random_tensor({5, 1}, 3)}},
                {"empty", {random_tensor({0, 7}, 4), random_tensor({1}, 5)}}};
  op.twice = true;
  op.refusals = {
      {[] { where(zeros({2}, DType::f32), zeros({2}, DType::f32), zeros({2}, DType::f32)); },
       "where: the condition must be bool: got f32"},
      {[] { where(zeros({2}, DType::bool_), zeros({2}, DType::f32), zeros({2}, DType::f64)); },
       "where: dtypes differ"}};
  check_op(op);
  const Tensor ints = where(less(arange(4, DType::i64), full({}, 2, DType::i64)),
                            full({}, 7, DType::i64), arange(4, DType::i64));
  EXPECT_TRUE(same_bits(ints, tensor_of(std::vector<int64_t>{7, 7, 2, 3}, {4})));
}

}  // namespace
}  // namespace ingot::testing
