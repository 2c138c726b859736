#include "ingot/ops/coded_linear.h"

#include <gtest/gtest.h>

#include "ingot/autograd/backward.h"
#include "ingot/autograd/record.h"
#include "ingot/ops/linear.h"
#include "ingot/tensor/factories.h"
#include "tests/ops/plain_rows.h"
#include "tests/support/op_case.h"

namespace ingot::testing {
namespace {

TEST(CodedLinear, PassesItsCase) {
  const Tensor weight = random_tensor({5, 7}, 3);
  OpCase op;
  op.name = "coded_linear";
  op.run = [weight](const TensorList& x) {
    return TensorList{
        coded_linear(x[0], std::make_shared<PlainRows>(moved(weight, x[0].device())), x[1])};
  };
  op.reference = [weight](const TensorList& x) { return TensorList{linear(x[0], weight, x[1])}; };
  op.samples = {{"odd size", {random_tensor({2, 3, 7}, 1), random_tensor({5}, 2)}},
                {"no rows", {random_tensor({0, 7}, 1), random_tensor({5}, 2)}}};
  op.twice = true;
  const auto five = std::make_shared<PlainRows>(weight);
  op.refusals = {
      {[=] {
         coded_linear(random_tensor({2, 6}, 1), five);
       },
       "coded_linear: inner dimensions differ: x is [2, 6], the weight is [5, 7]"},
      {[=] {
         coded_linear(random_tensor({2, 7}, 1), five, random_tensor({4}, 1));
       },
       "coded_linear: bias has not one element a row of weight in the type of x: bias is [4], the "
       "weight has 5 rows"},
      {[=] {
         coded_linear(zeros({2, 7}, DType::i64), five);
       },
       "coded_linear: takes floating-point tensors: got i64"},
      {[=] {
         coded_linear(zeros({2, 7}, DType::f64, meta_device), five);
       },
       "coded_linear: devices differ: x is on meta, the weight is on cpu"}};
  check_op(op);
}

TEST(CodedLinear, NeverDecodesAWideWeightWhole) {
  const auto weight =
      std::make_shared<PlainRows>(converted(random_tensor({1000, 4096}, 3), DType::f32));
  Tensor x = converted(random_tensor({40, 4096}, 1), DType::f32);
  backward(coded_linear(require_grad(x), weight), zeros({40, 1000}, DType::f32));
  EXPECT_LE(weight->most, 512);
}

TEST(AddLinear, PassesItsCase) {
  OpCase op;
  op.name = "add_linear";
  op.run = [](const TensorList& x) { return TensorList{add_linear(x[0], x[1], x[2])}; };
  op.reference = [](const TensorList& x) {
    Tensor y = copy_of(linear(x[1], x[2]));
    add_into(y, x[0]);
    return TensorList{y};
  };
  op.samples = {
      {"odd size",
       {random_tensor({2, 3, 5}, 1), random_tensor({2, 3, 7}, 2), random_tensor({5, 7}, 3)}},
      {"no rows", {random_tensor({0, 5}, 1), random_tensor({0, 7}, 2), random_tensor({5, 7}, 3)}}};
  op.twice = true;
  op.refusals = {
      {[] {
         add_linear(random_tensor({2, 4}, 1), random_tensor({2, 7}, 2), random_tensor({5, 7}, 3));
       },
       "add_linear: y is not of the product's shape and type: y is [2, 4] f64, x is [2, "
       "7] f64, weight is [5, 7]"}};
  check_op(op);
}

TEST(AddLinear, AddsInPlaceOnlyToWhatNobodyElseHolds) {
  const Tensor x = random_tensor({2, 7}, 2);
  const Tensor weight = random_tensor({5, 7}, 3);
  Tensor y = random_tensor({2, 5}, 1);
  const Tensor before = copy_of(y);
  const Tensor kept = add_linear(y, x, weight);
  EXPECT_TRUE(same_bits(y, before));
  const void* memory = y.view().data;
  const Tensor given = add_linear(std::move(y), x, weight);
  EXPECT_EQ(given.view().data, memory);
  EXPECT_TRUE(same_bits(given, kept));
}

}  // namespace
}  // namespace ingot::testing
