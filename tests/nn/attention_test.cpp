#include "ingot/nn/attention.h"

#include <gtest/gtest.h>

#include <cmath>

#include "ingot/nn/initialise.h"
#include "ingot/nn/rotary.h"
#include "ingot/ops/elementwise.h"
#include "ingot/ops/linear.h"
#include "ingot/ops/matmul.h"
#include "ingot/ops/shape.h"
#include "ingot/ops/softmax.h"
#include "ingot/tensor/copy.h"
#include "ingot/tensor/factories.h"
#include "tests/support/op_case.h"

namespace ingot::testing {
namespace {

nn::AttentionShape shape_of(int64_t heads, int64_t kv_heads) {
  nn::AttentionShape shape;
  shape.width = 24;
  shape.heads = heads;
  shape.kv_heads = kv_heads;
  shape.head_dim = 6;
  return shape;
}

// softmax(q kᵀ / √C) v for one head, lower triangle only.   q, k, v: [B, T, C]
Tensor one_head(const Tensor& q, const Tensor& k, const Tensor& v) {
  const int64_t tokens = q.size(1);
  std::vector<double> mask;
  for (int64_t i = 0; i < tokens; ++i) {
    for (int64_t j = 0; j < tokens; ++j) {
      mask.push_back(j <= i ? 0 : -1e30);
    }
  }
  const Tensor scores =
      matmul(q, transpose(k)) / std::sqrt(6.0) + tensor_of(mask, {tokens, tokens});
  return matmul(softmax(scores), v);
}

Tensor rows(const Tensor& weight, int64_t head) { return slice(weight, 0, 6 * head, 6 * head + 6); }

void expect_heads_apart(int64_t heads, int64_t kv_heads) {
  nn::Attention layer(shape_of(heads, kv_heads), DType::f64, cpu_device);
  nn::initialise(layer, {"normal", 0.3}, 5);
  const Tensor x = random_tensor({2, 9, 24}, 3);
  TensorList parts;
  for (int64_t h = 0; h < heads; ++h) {
    const int64_t g = h / (heads / kv_heads);
    parts.push_back(one_head(linear(x, rows(layer.wq.weight, h)),
                             linear(x, rows(layer.wk.weight, g)),
                             linear(x, rows(layer.wv.weight, g))));
  }
  const Tensor expected = linear(concat(parts, int64_t{-1}), layer.wo.weight);
  EXPECT_LE(difference(layer(x, {}), expected), 1e-12);
}

TEST(Attention, EqualsItsHeadsComputedApart) {
  expect_heads_apart(4, 4);  // multi-head
  expect_heads_apart(4, 2);  // grouped-query
  expect_heads_apart(4, 1);  // multi-query
}

TEST(Attention, LaterTokensDoNotChangeEarlierOutputs) {
  for (const DType dtype : {DType::f32, DType::bf16}) {
    nn::AttentionShape shape = shape_of(4, 2);
    shape.qk_norm = nn::NormKind::rms;
    shape.bias = nn::Bias::yes;
    nn::Attention layer(shape, dtype, cpu_device);
    nn::initialise(layer, {"normal", 0.3}, 5);
    const Tensor x = converted(random_tensor({1, 40, 24}, 3), dtype);
    const Tensor other =
        concat({slice(x, 1, 0, 17), converted(random_tensor({1, 23, 24}, 4), dtype)}, 1);
    nn::Context context;
    context.rope = nn::rotary_tables({}, arange(40, DType::i64), 6, 64, 40, DType::f32);
    EXPECT_TRUE(
        same_bits(slice(layer(x, context), 1, 0, 17), slice(layer(other, context), 1, 0, 17)));
  }
}

TEST(Attention, RefusesHeadsThatDoNotDivide) {
  expect_error([] { nn::Attention layer(shape_of(4, 3), DType::f32, cpu_device); },
               "attention: query heads do not divide among key heads: heads is 4, kv_heads is 3");
}

}  // namespace
}  // namespace ingot::testing
