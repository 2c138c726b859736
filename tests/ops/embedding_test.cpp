#include "ingot/ops/embedding.h"

#include <gtest/gtest.h>
#include <omp.h>

#include "ingot/autograd/backward.h"
#include "ingot/autograd/record.h"
#include "ingot/tensor/copy.h"
#include "ingot/tensor/factories.h"
#include "tests/support/op_case.h"

namespace ingot::testing {
namespace {

Tensor ids_of(const std::vector<int64_t>& ids, const Shape& shape) { return tensor_of(ids, shape); }

Tensor by_definition(const Tensor& weight, const Tensor& ids) {
  Shape shape = ids.shape();
  shape.push_back(weight.size(1));
  Tensor y = empty(shape, DType::f64);
  const auto table = weight.values<double>();
  const auto id = ids.values<int64_t>();
  auto out = y.mutable_values<double>();
  const auto features = static_cast<size_t>(weight.size(1));
  for (size_t i = 0; i < out.size(); ++i) {
    out[i] = table[static_cast<size_t>(id[i / features]) * features + i % features];
  }
  return y;
}

TEST(Embedding, PassesItsCase) {
  OpCase op;
  op.name = "embedding";
  op.run = [](const TensorList& x) { return TensorList{embedding(x[0], x[1])}; };
  op.reference = [](const TensorList& x) { return TensorList{by_definition(x[0], x[1])}; };
  op.samples = {{"repeated ids", {random_tensor({7, 37}, 1), ids_of({3, 0, 3, 6, 3, 1}, {2, 3})}},
                {"one feature", {random_tensor({3, 1}, 2), ids_of({2, 2}, {2})}},
                {"a scalar id", {random_tensor({3, 5}, 3), ids_of({1}, {})}},
                {"no ids", {random_tensor({3, 5}, 4), ids_of({}, {0})}}};
  op.twice = true;
  op.refusals = {
      {[] {
         embedding(zeros({4, 2}, DType::f32), ids_of({0, 1, 2, 3, 1, 4}, {2, 3}));
       },
       "embedding: id out of range: ids[1, 2] is 4, weight has 4 rows"},
      {[] {
         embedding(zeros({4, 2}, DType::f32), ids_of({0, -1}, {2}));
       },
       "embedding: id out of range: ids[1] is -1, weight has 4 rows"},
      {[] {
         embedding(zeros({4, 2}, DType::i64), ids_of({0}, {1}));
       },
       "embedding: takes a floating-point weight: got i64"},
      {[] {
         embedding(zeros({4, 2}, DType::f32), zeros({1}, DType::f32));
       },
       "embedding: takes i64 or i32 ids: got f32"},
      {[] { embedding(zeros({4}, DType::f32), ids_of({0}, {1})); },
       "embedding: takes a weight [V, D]: got [4]"},
      {[] {
         embedding(zeros({4, 2}, DType::f32, meta_device), ids_of({0}, {1}));
       },
       "embedding: devices differ: weight is on meta, ids are on cpu"},
  };
  check_op(op);
}

TEST(Embedding, TakesIdsOf32Bits) {
  const Tensor weight = random_tensor({5, 3}, 1);
  const Tensor ids = ids_of({4, 0, 2}, {3});
  EXPECT_TRUE(same_bits(embedding(weight, converted(ids, DType::i32)), embedding(weight, ids)));
}

TEST(Embedding, AddsRepeatedRowsInF32WithTheSameBitsForAnyThreadCount) {
  const int before = omp_get_max_threads();
  constexpr int64_t count = 1000;
  std::vector<int64_t> list;
  for (int64_t i = 0; i < count; ++i) {
    list.push_back(i * i % 5);
  }
  const Tensor ids = ids_of(list, {count});
  const Tensor dy = normal({count, 70}, 0, 1, {3, 0, 0}, DType::bf16);
  Tensor first;
  for (const int threads : {1, 2, 3}) {
    omp_set_num_threads(threads);
    Tensor weight = zeros({5, 70}, DType::bf16);
    require_grad(weight);
    const Tensor y = embedding(weight, ids);
    const Tensor dw = gradients({y}, {weight}, {dy})[0];
    EXPECT_EQ(dw.dtype(), DType::f32);
    first = first.defined() ? first : dw;
    EXPECT_TRUE(same_bits(dw, first)) << threads;
  }
  omp_set_num_threads(before);
}

}  // namespace
}  // namespace ingot::testing
