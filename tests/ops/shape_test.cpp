#include "ingot/ops/shape.h"

#include <gtest/gtest.h>

#include "ingot/autograd/backward.h"
#include "ingot/autograd/record.h"
#include "ingot/ops/elementwise.h"
#include "ingot/tensor/copy.h"
#include "ingot/tensor/factories.h"
#include "ingot/tensor/layout.h"
#include "tests/support/op_case.h"

namespace ingot::testing {
namespace {

using Run = std::function<Tensor(const Tensor&)>;

// An operation of shape: where each element of the result comes from. The reference is the
// operation on the elements' numbers, copied one at a time.
struct Move {
  const char* name;
  Run run;
  Shape input;
  std::vector<int64_t> sources;  // of the result's elements, row-major; −1 for the value 9
  Shape output;
};

Tensor moved_by_hand(const Tensor& x, const Move& move) {
  const Tensor from = dense(x);
  Tensor y = empty(move.output, DType::f64);
  auto out = y.mutable_values<double>();
  for (size_t i = 0; i < out.size(); ++i) {
    out[i] = move.sources[i] < 0 ? 9 : from.values<double>()[static_cast<size_t>(move.sources[i])];
  }
  return y;
}

std::vector<Move> moves() {
  return {
      {"reshape",
       [](const Tensor& x) {
         return reshape(x, {3, -1});
       },
       {2, 3},
       {0, 1, 2, 3, 4, 5},
       {3, 2}},
      {"transpose",
       [](const Tensor& x) { return transpose(x); },
       {2, 3},
       {0, 3, 1, 4, 2, 5},
       {3, 2}},
      {"permute",
       [](const Tensor& x) {
         return permute(x, {2, 0, -2});
       },
       {2, 1, 3},
       {0, 3, 1, 4, 2, 5},
       {3, 2, 1}},
      {"expand",
       [](const Tensor& x) {
         return expand(x, {2, 2, 3});
       },
       {2, 1},
       {0, 0, 0, 1, 1, 1, 0, 0, 0, 1, 1, 1},
       {2, 2, 3}},
      {"squeeze",
       [](const Tensor& x) { return squeeze(x, -2); },
       {3, 1, 2},
       {0, 1, 2, 3, 4, 5},
       {3, 2}},
      {"unsqueeze",
       [](const Tensor& x) { return unsqueeze(x, -1); },
       {2, 2},
       {0, 1, 2, 3},
       {2, 2, 1}},
      {"contiguous",
       [](const Tensor& x) { return contiguous(transpose(x)); },
       {2, 2},
       {0, 2, 1, 3},
       {2, 2}},
      {"slice",
       [](const Tensor& x) { return slice(x, 1, 1, 4); },
       {2, 5},
       {1, 2, 3, 6, 7, 8},
       {2, 3}},
      {"slice with step",
       [](const Tensor& x) { return slice(x, -1, -4, 5, 2); },
       {2, 5},
       {1, 3, 6, 8},
       {2, 2}},
      {"pad",
       [](const Tensor& x) { return pad(x, 0, 1, 2, 9); },
       {2, 2},
       {-1, -1, 0, 1, 2, 3, -1, -1, -1, -1},
       {5, 2}},
      {"flip", [](const Tensor& x) { return flip(x, 0); }, {3, 2}, {4, 5, 2, 3, 0, 1}, {3, 2}},
      {"roll", [](const Tensor& x) { return roll(x, -1, 1); }, {2, 3}, {1, 2, 0, 4, 5, 3}, {2, 3}},
      {"roll by more than the size",
       [](const Tensor& x) { return roll(x, 7, 0); },
       {3, 1},
       {2, 0, 1},
       {3, 1}},
      {"stack of itself",
       [](const Tensor& x) {
         return stack({x, x}, 1);
       },
       {2, 2},
       {0, 1, 0, 1, 2, 3, 2, 3},
       {2, 2, 2}},
      {"concat of itself",
       [](const Tensor& x) {
         return concat({x, slice(x, 1, 0, 1)}, 1);
       },
       {2, 2},
       {0, 1, 0, 2, 3, 2},
       {2, 3}},
      {"reshape of an empty one",
       [](const Tensor& x) {
         return reshape(x, {4, 0});
       },
       {0, 7},
       {},
       {4, 0}},
      {"flip of an empty one", [](const Tensor& x) { return flip(x, 0); }, {0, 2}, {}, {0, 2}},
  };
}

TEST(Shape, MovesPassTheirCases) {
  for (const Move& move : moves()) {
    OpCase op;
    op.name = move.name;
    op.run = [&](const TensorList& x) { return TensorList{move.run(x[0])}; };
    op.reference = [&](const TensorList& x) { return TensorList{moved_by_hand(x[0], move)}; };
    op.samples = {{"the case", {random_tensor(move.input, 1)}}};
    op.twice = true;
    check_op(op);
  }
}

TEST(Shape, ViewsShareTheirElements) {
  const Tensor x = random_tensor({4, 6}, 1);
  for (const Tensor& y :
       {reshape(x, {24}), transpose(x), permute(x, {1, 0}), unsqueeze(x, 0), slice(x, 0, 1, 3),
        expand(unsqueeze(x, 0), {5, 4, 6}), split(x, {2, 4})[1]}) {
    EXPECT_EQ(y.storage(), x.storage());
  }
  EXPECT_NE(reshape(transpose(x), {24}).storage(), x.storage());  // strides do not allow a view
  EXPECT_NE(contiguous(transpose(x)).storage(), x.storage());
}

TEST(Shape, SplitAndConcatPassTheirCase) {
  OpCase op;
  op.name = "split and concat";
  op.run = [](const TensorList& x) {
    const TensorList parts = split(x[0], {2, 0, 3}, 1);
    return TensorList{concat({parts[2], x[1], parts[0]}, 1), parts[1]};
  };
  op.reference = [](const TensorList& x) {
    return TensorList{concat({slice(x[0], 1, 2, 5), x[1], slice(x[0], 1, 0, 2)}, 1),
                      slice(x[0], 1, 2, 2)};
  };
  op.samples = {{"odd size", {random_tensor({3, 5}, 1), random_tensor({3, 1}, 2)}},
                {"no rows", {random_tensor({0, 5}, 3), random_tensor({0, 2}, 4)}}};
  op.twice = true;
  op.refusals = {{[] {
                    split(zeros({4}, DType::f32), {1, 2});
                  },
                  "split: the sizes sum to 3, dimension -1 of [4] has 4"},
                 {[] {
                    concat({zeros({2, 2}, DType::f32), zeros({3, 3}, DType::f32)}, 0);
                  },
                  "concat: shapes differ outside dimension 0: part 0 is [2, 2], part 1 is [3, 3]"},
                 {[] {
                    concat({zeros({2}, DType::f32), zeros({2}, DType::i64)}, 0);
                  },
                  "concat: dtypes differ: part 0 is f32, part 1 is i64"},
                 {[] { concat({}, 0); }, "concat: takes at least one tensor"}};
  check_op(op);
}

TEST(Shape, SplitBackwardFillsInPartsWithoutGradient) {
  Tensor x = random_tensor({5}, 1);
  require_grad(x);
  const TensorList parts = split(x, {2, 3});
  const Tensor dx = gradients({parts[1]}, {x}, {full({3}, 2, DType::f64)})[0];
  EXPECT_EQ(difference(dx, tensor_of(std::vector<double>{0, 0, 2, 2, 2}, {5})), 0);
}

// Element by element.
Tensor summed_by_hand(const Tensor& x, const Shape& shape) {
  Tensor y = zeros(shape, DType::f64);
  const Tensor from = dense(x);
  auto sums = y.mutable_values<double>();
  for (int64_t at = 0; at < x.elements(); ++at) {
    int64_t rest = at;
    int64_t to = 0;
    int64_t step = 1;
    for (int64_t i = 1; i <= x.rank(); ++i) {
      const int64_t here = rest % x.size(-i);
      rest /= x.size(-i);
      if (i <= shape.rank()) {
        to += shape.size(-i) == 1 ? 0 : here * step;
        step *= shape.size(-i);
      }
    }
    sums[static_cast<size_t>(to)] += from.values<double>()[static_cast<size_t>(at)];
  }
  return y;
}

TEST(SumTo, PassesItsCase) {
  const std::vector<std::pair<Shape, Shape>> cases = {
      {{3, 5}, {5}},          {{3, 5}, {3, 1}},    {{3, 5}, {}},         {{2, 3, 4, 5}, {3, 1, 5}},
      {{2, 3, 4}, {1, 1, 4}}, {{700, 300}, {300}}, {{0, 4}, {4}},        {{4, 0}, {4, 1}},
      {{3, 1, 2}, {1, 2}},    {{70000, 3}, {3}},   {{2, 40000}, {2, 1}}, {{40000}, {1}}};
  for (const auto& [from, to] : cases) {
    OpCase op;
    op.name = "sum_to";
    op.run = [shape = to](const TensorList& x) { return TensorList{sum_to(x[0], shape)}; };
    op.reference = [shape = to](const TensorList& x) {
      return TensorList{summed_by_hand(x[0], shape)};
    };
    op.samples = {{concat("from ", from), {random_tensor(from, 3)}}};
    op.twice = from.elements() < 1000;
    check_op(op);
  }
  expect_error(
      [] {
        sum_to(zeros({2, 3}, DType::f32), {2});
      },
      "sum_to: [2, 3] does not sum to [2]");
  expect_error(
      [] {
        sum_to(zeros({2, 3}, DType::i64), {3});
      },
      "sum_to: takes floating-point tensors");
}

TEST(Cast, RoundsAndCastsTheGradientBack) {
  Tensor x = tensor_of(std::vector<float>{1.0F, 1.00390625F, -3.7F}, {3});
  require_grad(x);
  const Tensor y = cast(x, DType::bf16);
  EXPECT_EQ(difference(y, tensor_of(std::vector<double>{1, 1, -3.703125}, {3})), 0);
  const Tensor dx = gradients({y}, {x}, {full({3}, 0.5, DType::bf16)})[0];
  EXPECT_EQ(dx.dtype(), DType::f32);
  EXPECT_EQ(difference(dx, full({3}, 0.5, DType::f64)), 0);
  EXPECT_EQ(cast(x, DType::f32).storage(), x.storage());
  EXPECT_EQ(cast(x, DType::i64).node(), nullptr);
  EXPECT_TRUE(same_bits(cast(x, DType::i64), tensor_of(std::vector<int64_t>{1, 1, -3}, {3})));
}

TEST(Shape, RefusesWhatDoesNotFit) {
  const Tensor x = zeros({2, 3}, DType::f32);
  expect_error(
      [&] {
        reshape(x, {4, 2});
      },
      "reshape: element counts differ: x is [2, 3] (6), asked for [4, 2] (8)");
  expect_error(
      [&] {
        reshape(x, {4, -1});
      },
      "reshape: no size fits the −1: x is [2, 3] (6 elements), asked for [4, -1]");
  expect_error([&] { reshape(x, {-1, -1}); }, "reshape: more than one size is −1: [-1, -1]");
  expect_error([&] { reshape(x, {-2, -3}); }, "reshape: a size is negative: [-2, -3]");
  expect_error([&] { reshape(zeros({0}, DType::f32), {0, -1}); }, "reshape: no size fits the −1");
  expect_error([&] { transpose(x, 0, 2); }, "shape: dimension 2 is outside a shape of rank 2");
  expect_error([&] { permute(x, {0, 0}); }, "permute: dimension 0 named twice");
  expect_error([&] { permute(x, {0}); }, "permute: 1 dimensions named for shape [2, 3]");
  expect_error([&] { expand(x, {3, 3}); }, "expand: [2, 3] does not expand to [3, 3]");
  expect_error([&] { expand(x, {3}); }, "expand: [2, 3] has more dimensions than [3]");
  expect_error([&] { squeeze(x, 0); }, "squeeze: dimension 0 of [2, 3] has size 2, not 1");
  expect_error([&] { unsqueeze(x, 3); }, "unsqueeze: position 3 is outside shape [2, 3]");
  expect_error([&] { slice(x, 1, 1, 4); },
               "slice: [1, 4) with step 1 is outside dimension 1 of [2, 3]");
  expect_error([&] { pad(x, 0, -1, 0); },
               "pad: counts must not be negative: before is -1, after is 0");
}

}  // namespace
}  // namespace ingot::testing
