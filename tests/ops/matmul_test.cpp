#include "ingot/ops/matmul.h"

#include <gtest/gtest.h>

#include "ingot/autograd/backward.h"
#include "ingot/autograd/record.h"
#include "ingot/device/flops.h"
#include "ingot/ops/shape.h"
#include "ingot/tensor/copy.h"
#include "ingot/tensor/factories.h"
#include "ingot/tensor/layout.h"
#include "tests/support/op_case.h"

namespace ingot::testing {
namespace {

// The definition: y[l, m, n] = Σ_k a[l, m, k] b[l, k, n] over the broadcast leading indices l.
Tensor by_definition(const Tensor& a, const Tensor& b) {
  Shape a_lead = a.shape();
  Shape b_lead = b.shape();
  for (Shape* lead : {&a_lead, &b_lead}) {
    lead->erase(lead->rank() - 1);
    lead->erase(lead->rank() - 1);
  }
  Shape lead = broadcast(a_lead, b_lead, "by_definition");
  const int64_t M = a.size(-2);
  const int64_t K = a.size(-1);
  const int64_t N = b.size(-1);
  const auto repeated = [&](const Tensor& x) {
    Shape shape = lead;
    shape.push_back(x.size(-2));
    shape.push_back(x.size(-1));
    return copy_of(expanded(x, shape));
  };
  const Tensor full_a = repeated(a);
  const Tensor full_b = repeated(b);
  Shape shape = lead;
  shape.push_back(M);
  shape.push_back(N);
  Tensor y = zeros(shape, DType::f64);
  const double* in_a = full_a.values<double>().data();
  const double* in_b = full_b.values<double>().data();
  double* out = y.mutable_values<double>().data();
  for (int64_t l = 0; l < lead.elements(); ++l) {
    for (int64_t m = 0; m < M; ++m) {
      for (int64_t n = 0; n < N; ++n) {
        for (int64_t k = 0; k < K; ++k) {
          out[(l * M + m) * N + n] += in_a[(l * M + m) * K + k] * in_b[(l * K + k) * N + n];
        }
      }
    }
  }
  return y;
}

OpCase matmul_case() {
  OpCase op;
  op.name = "matmul";
  op.run = [](const TensorList& x) { return TensorList{matmul(x[0], x[1])}; };
  op.reference = [](const TensorList& x) { return TensorList{by_definition(x[0], x[1])}; };
  op.samples = {
      {"matrices of odd sizes", {random_tensor({5, 7}, 1), random_tensor({7, 3}, 2)}},
      {"a batch", {random_tensor({3, 5, 7}, 3), random_tensor({3, 7, 4}, 4)}},
      {"broadcast on both sides", {random_tensor({2, 1, 3, 5}, 5), random_tensor({4, 5, 2}, 6)}},
      {"one matrix for a batch", {random_tensor({2, 3, 4, 5}, 7), random_tensor({5, 6}, 8)}},
      {"a batch for one matrix", {random_tensor({4, 5}, 9), random_tensor({3, 5, 2}, 10)}},
      {"size 1 everywhere", {random_tensor({1, 1}, 11), random_tensor({1, 1}, 12)}},
      {"a row and a column", {random_tensor({1, 9}, 13), random_tensor({9, 1}, 14)}},
      {"no rows", {random_tensor({2, 0, 3}, 15), random_tensor({2, 3, 4}, 16)}},
      {"a sum over no terms", {random_tensor({3, 0}, 17), random_tensor({0, 4}, 18)}},
      {"no batch", {random_tensor({0, 2, 3}, 19), random_tensor({0, 3, 4}, 20)}},
  };
  op.twice = true;
  return op;
}

TEST(Matmul, PassesItsCase) {
  OpCase op = matmul_case();
  op.refusals = {
      {[] {
         matmul(zeros({2, 2}, DType::i64), zeros({2, 2}, DType::i64));
       },
       "matmul: takes floating-point tensors: got i64"},
      {[] {
         matmul(zeros({2, 2}, DType::f32), zeros({2, 2}, DType::bf16));
       },
       "matmul: dtypes differ: a is f32, b is bf16"},
      {[] {
         matmul(zeros({4, 8}, DType::f32), zeros({7, 2}, DType::f32));
       },
       "matmul: inner dimensions differ: a is [4, 8], b is [7, 2]"},
      {[] {
         matmul(zeros({8}, DType::f32), zeros({8, 2}, DType::f32));
       },
       "matmul: takes at least two dimensions: a is [8], b is [8, 2]"},
      {[] {
         matmul(zeros({2, 3, 4}, DType::f32), zeros({5, 4, 2}, DType::f32));
       },
       "matmul: shapes do not broadcast: a is [2], b is [5]"},
  };
  check_op(op);
}

TEST(Matmul, CountsItsOperationsForwardAndBackward) {
  for (const Device device : {cpu_device, meta_device}) {
    Tensor a = zeros({3, 4, 5}, DType::f32, device);
    Tensor b = zeros({3, 5, 6}, DType::f32, device);
    require_grad(a);
    require_grad(b);
    reset_flops();
    const Tensor y = matmul(a, b);
    EXPECT_EQ(counted_flops(), 2 * 3 * 4 * 5 * 6);
    backward(y, zeros({3, 4, 6}, DType::f32, device));
    EXPECT_EQ(counted_flops(), 3 * 2 * 3 * 4 * 5 * 6);
  }
}

// Columns of a wider tensor, split heads: layouts that attention hands over.
TEST(Matmul, ReadsSlicesAndHeadsWithoutChangingTheResult) {
  const Tensor wide = random_tensor({2, 6, 3, 8}, 1);  // [B, T, H, C]
  const Tensor q = permuted(sliced(wide, 3, 0, 4), std::vector<int64_t>{0, 2, 1, 3});
  const Tensor k = permuted(sliced(wide, 3, 4, 8), std::vector<int64_t>{0, 2, 3, 1});
  const Tensor expected = matmul(copy_of(q), copy_of(k));
  EXPECT_TRUE(same_bits(matmul(q, k), expected));
  EXPECT_LE(difference(by_definition(q, k), expected), 1e-14);
}

}  // namespace
}  // namespace ingot::testing
