#include "ingot/tensor/tensor.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

#include "ingot/tensor/copy.h"
#include "ingot/tensor/factories.h"
#include "ingot/tensor/layout.h"
#include "tests/support/op_case.h"

namespace ingot::testing {
namespace {

Tensor counting(const Shape& shape) {
  return reshaped(arange(shape.elements(), DType::f64), shape);
}

Tensor f64s(const std::vector<double>& values, const Shape& shape) {
  return tensor_of(values, shape);
}

TEST(Tensor, KnowsItsLayout) {
  const Tensor x = zeros({2, 3, 4}, DType::bf16);
  EXPECT_EQ(x.rank(), 3);
  EXPECT_EQ(x.size(-1), 4);
  EXPECT_EQ(x.elements(), 24);
  EXPECT_EQ(x.bytes(), 48);
  EXPECT_EQ(x.strides(), (Strides{12, 4, 1}));
  EXPECT_TRUE(x.dense());
  EXPECT_EQ(x.node(), nullptr);
  EXPECT_FALSE(Tensor().defined());
  expect_error([&] { x.size(3); }, "shape: dimension 3 is outside a shape of rank 3: [2, 3, 4]");
}

TEST(Tensor, IsAValueThatSharesItsElements) {
  Tensor x = zeros({3}, DType::f32);
  const Tensor same = x;
  x.mutable_values<float>()[1] = 5;
  EXPECT_EQ(same.values<float>()[1], 5);
  EXPECT_EQ(same.storage()->version(), 1U);
  x.fresh_view();
  EXPECT_EQ(same.storage()->version(), 1U);
}

TEST(Tensor, ItemTakesOneElementOfAnyType) {
  EXPECT_EQ(full({1, 1}, 7, DType::i32).item(), 7);
  EXPECT_EQ(scalar(1.5, DType::bf16).item(), 1.5);
  EXPECT_EQ(scalar(1, DType::bool_).item(), 1);
  expect_error([] { zeros({2}, DType::f32).item(); },
               "item: takes a tensor of one element: got shape [2]");
  expect_error([] { scalar(1, DType::f32, meta_device).item(); },
               "item: the meta device has no values");
}

TEST(Tensor, ValuesRefuseTheWrongTypeOrLayout) {
  const Tensor x = counting({2, 3});
  expect_error([&] { x.values<float>(); }, "values: the tensor holds f64, asked for f32");
  expect_error([&] { transposed(x, 0, 1).values<double>(); },
               "is not dense; call contiguous first");
  expect_error([] { zeros({2}, DType::f32, meta_device).values<float>(); },
               "values: the meta device has none");
}

TEST(Tensor, OfAReadOnlyMappingRefusesWrites) {
  const auto bytes = std::make_shared<std::vector<std::byte>>(16);
  Tensor x(std::make_shared<Storage>(bytes->data(), 16, bytes), {4}, {1}, 0, DType::f32);
  EXPECT_EQ(x.values<float>()[3], 0);
  expect_error([&] { x.mutable_view(); },
               "tensor: its memory is a read-only mapping; copy it first");
  expect_error([] { Tensor().view(); }, "tensor: undefined");
}

TEST(Factories, FillAsTheySay) {
  EXPECT_EQ(difference(arange(4, DType::f32), f64s({0, 1, 2, 3}, {4})), 0);
  EXPECT_EQ(difference(full({2}, -2.5, DType::f16), f64s({-2.5, -2.5}, {2})), 0);
  EXPECT_EQ(scalar(3, DType::f64).shape(), Shape{});
  EXPECT_EQ(arange(5, DType::i64, meta_device).shape(), (Shape{5}));
  EXPECT_EQ(zeros({0, 3}, DType::f32).elements(), 0);
  expect_error([] { empty({2, -1}, DType::f32); }, "empty: a size is negative: [2, -1]");
  expect_error([] { f64s({1, 2}, {3}); }, "tensor_of: 2 values for shape [3]");
}

TEST(Factories, RandomTensorsDependOnKeyAndIndexAlone) {
  const RandomKey key{7, 3, 1};
  const Tensor x = uniform({100, 200}, -1, 3, key, DType::f32);
  EXPECT_TRUE(same_bits(reshaped(x, {20000}), uniform({20000}, -1, 3, key, DType::f32)));
  EXPECT_TRUE(
      same_bits(sliced(reshaped(x, {20000}), 0, 0, 50), uniform({50}, -1, 3, key, DType::f32)));
  EXPECT_FALSE(same_bits(x, uniform({100, 200}, -1, 3, {7, 3, 2}, DType::f32)));
  double least = 9;
  double most = -9;
  double sum = 0;
  for (const float v : x.values<float>()) {
    least = std::min<double>(least, v);
    most = std::max<double>(most, v);
    sum += v;
  }
  EXPECT_GE(least, -1);
  EXPECT_LT(most, 3);
  EXPECT_NEAR(sum / 20000, 1, 4 * 4 / std::sqrt(12.0 * 20000));  // four standard errors
}

TEST(Factories, NormalTensorsHaveTheirMoments) {
  const Tensor x = normal({20000}, 2, 3, {1, 0, 0}, DType::f64);
  double sum = 0;
  double squares = 0;
  for (const double v : x.values<double>()) {
    sum += v;
    squares += (v - 2) * (v - 2);
  }
  EXPECT_NEAR(sum / 20000, 2, 4 * 3 / std::sqrt(20000.0));
  EXPECT_NEAR(squares / 20000, 9, 4 * 9 * std::sqrt(2.0 / 20000));
}

TEST(Layout, ViewsSeeTheRightElements) {
  const Tensor x = counting({2, 3});
  EXPECT_EQ(difference(transposed(x, 0, 1), f64s({0, 3, 1, 4, 2, 5}, {3, 2})), 0);
  EXPECT_EQ(difference(sliced(x, 1, 1, 3), f64s({1, 2, 4, 5}, {2, 2})), 0);
  EXPECT_EQ(difference(sliced(x, 1, 0, 3, 2), f64s({0, 2, 3, 5}, {2, 2})), 0);
  EXPECT_EQ(difference(expanded(sliced(x, 0, 1, 2), {2, 2, 3}),
                       f64s({3, 4, 5, 3, 4, 5, 3, 4, 5, 3, 4, 5}, {2, 2, 3})),
            0);
  const std::vector<int64_t> order = {1, 0};
  EXPECT_EQ(difference(permuted(x, order), transposed(x, 0, 1)), 0);
  EXPECT_EQ(sliced(x, 0, 1, 1).shape(), (Shape{0, 3}));
  for (const Tensor& view : {transposed(x, 0, 1), sliced(x, 1, 1, 3), reshaped(x, {6})}) {
    EXPECT_EQ(view.storage(), x.storage());
  }
}

// Whether `shape` of a view is reachable without a copy: its elements in order must sit at offsets
// that some strides of `shape` give. Tried by brute force on the offsets of the elements.
bool reshapes_by_brute_force(const Tensor& x, const Shape& shape) {
  const Tensor offsets = counting({x.storage()->bytes() / 8});
  const Tensor seen =
      dense(Tensor(offsets.storage(), x.shape(), x.strides(), x.offset(), DType::f64));
  const auto at = seen.values<double>();
  Strides strides = dense_strides(shape);
  Strides found = Shape::filled(shape.rank(), 0);
  for (int64_t i = 0; i < shape.rank(); ++i) {
    if (shape[i] > 1) {
      found[i] = static_cast<int64_t>(at[static_cast<size_t>(strides[i])] - at[0]);
    }
  }
  int64_t last = x.offset();  // strides read off a layout that is no reshape may leave the storage
  int64_t first = x.offset();
  for (int64_t i = 0; i < shape.rank(); ++i) {
    (found[i] > 0 ? last : first) += (shape[i] - 1) * found[i];
  }
  if (first < 0 || last >= offsets.elements()) {
    return false;
  }
  const Tensor guess = dense(Tensor(offsets.storage(), shape, found, x.offset(), DType::f64));
  return std::equal(at.begin(), at.end(), guess.values<double>().begin());
}

TEST(Layout, ReshapesWithoutACopyExactlyWhereStridesAllowIt) {
  const Tensor x = counting({4, 6});
  const std::vector<Tensor> layouts = {x,
                                       transposed(x, 0, 1),
                                       sliced(x, 1, 0, 4),
                                       sliced(x, 0, 0, 4, 2),
                                       transposed(reshaped(x, {2, 2, 6}), 0, 1),
                                       transposed(reshaped(x, {4, 1, 6}), 0, 1)};
  const std::vector<Shape> shapes = {{24},   {2, 12},      {12, 2},   {2, 2, 6}, {6, 4}, {4, 2, 3},
                                     {3, 8}, {2, 2, 2, 3}, {16},      {4, 4},    {2, 8}, {8, 2},
                                     {12},   {4, 2, 2},    {2, 2, 3}, {1, 24, 1}};
  int64_t allowed = 0;
  int64_t refused = 0;
  for (const Tensor& layout : layouts) {
    for (const Shape& shape : shapes) {
      if (shape.elements() != layout.elements()) {
        EXPECT_FALSE(can_reshape(layout, shape));
        continue;
      }
      const bool expected = reshapes_by_brute_force(layout, shape);
      EXPECT_EQ(can_reshape(layout, shape), expected)
          << layout.shape() << layout.strides() << " to " << shape;
      (expected ? allowed : refused) += 1;
      if (expected && can_reshape(layout, shape)) {
        EXPECT_EQ(difference(reshaped(layout, shape), reshaped(dense(layout), shape)), 0);
      } else {
        expect_error([&] { reshaped(layout, shape); }, "without a copy; call contiguous first");
      }
    }
  }
  EXPECT_GT(allowed, 10);
  EXPECT_GT(refused, 10);
}

TEST(Copy, ConvertsBetweenTypes) {
  const Tensor x = f64s({0, 1, 2.7, -2.7, 300.5}, {5});
  EXPECT_EQ(difference(converted(x, DType::i32), f64s({0, 1, 2, -2, 300}, {5})), 0);  // truncated
  EXPECT_EQ(difference(converted(x, DType::bool_), f64s({0, 1, 1, 1, 1}, {5})), 0);
  EXPECT_EQ(difference(converted(x, DType::bf16), f64s({0, 1, 2.703125, -2.703125, 300}, {5})), 0);
  EXPECT_EQ(converted(x, DType::f64).storage(), x.storage());
  EXPECT_EQ(difference(converted(transposed(counting({3, 5}), 0, 1), DType::f32),
                       transposed(counting({3, 5}), 0, 1)),
            0);
}

TEST(Copy, IntoAndAddIntoTakeStridesAndTypes) {
  Tensor target = zeros({2, 3}, DType::f64);
  Tensor column = sliced(target, 1, 1, 2);
  copy_into(column, converted(f64s({5, 6}, {2, 1}), DType::f32));
  EXPECT_EQ(difference(target, f64s({0, 5, 0, 0, 6, 0}, {2, 3})), 0);
  EXPECT_GT(target.storage()->version(), 0U);
  add_into(target, transposed(counting({3, 2}), 0, 1));
  EXPECT_EQ(difference(target, f64s({0, 7, 4, 1, 9, 5}, {2, 3})), 0);
  Tensor sum = full({1}, 256, DType::bf16);
  add_into(sum, scalar(1.5, DType::f32).aliased({1}, {1}, 0));
  EXPECT_EQ(sum.item(), 258);  // 257.5 rounded once
  expect_error(
      [&] {
        copy_into(target, zeros({3, 2}, DType::f64));
      },
      "copy_into: shapes differ: target is [2, 3], source is [3, 2]");
}

TEST(Copy, DenseCopiesOnlyWhatIsNot) {
  const Tensor x = counting({2, 3});
  EXPECT_EQ(dense(x).storage(), x.storage());
  EXPECT_NE(dense(transposed(x, 0, 1)).storage(), x.storage());
  EXPECT_NE(copy_of(x).storage(), x.storage());
}

TEST(Copy, MovesToMetaButNotBack) {
  const Tensor x = counting({2, 3});
  const Tensor shape_only = moved(x, meta_device);
  EXPECT_EQ(shape_only.device(), meta_device);
  EXPECT_EQ(shape_only.shape(), x.shape());
  EXPECT_EQ(moved(x, cpu_device).storage(), x.storage());
  expect_error([&] { moved(shape_only, cpu_device); },
               "moved: a tensor on meta has no values to bring to cpu");
}

}  // namespace
}  // namespace ingot::testing
