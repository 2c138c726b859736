#include "ingot/nn/latent_attention.h"

#include <gtest/gtest.h>

#include <cmath>

#include "ingot/autograd/gradcheck.h"
#include "ingot/nn/initialise.h"
#include "ingot/nn/paged_cache.h"
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

constexpr int64_t tokens = 7;

nn::LatentAttentionShape shape_of(int64_t q_rank, int64_t value_dim) {
  nn::LatentAttentionShape s;
  s.width = 20;
  s.heads = 3;
  s.q_rank = q_rank;
  s.kv_rank = 9;
  s.nope_dim = 5;
  s.rope_dim = 4;
  s.value_dim = value_dim;
  return s;
}

nn::Context rotated_context(DType dtype, int64_t from = 0, int64_t count = tokens) {
  nn::Context context;
  const Tensor places = arange(count, DType::i64) + static_cast<double>(from);
  context.rope = nn::rotary_tables({}, places, 4, 64, count, dtype);
  return context;
}

std::unique_ptr<nn::LatentAttention> layer_of(const nn::LatentAttentionShape& shape,
                                              DType dtype = DType::f64) {
  auto layer = std::make_unique<nn::LatentAttention>(shape, dtype, cpu_device);
  nn::initialise(*layer, {"normal", 0.4}, 5);
  return layer;
}

// The columns of head h of a projection of heads·size features: [B, T, size] from `skip` on.
Tensor part(const Tensor& x, int64_t h, int64_t stride, int64_t skip, int64_t size) {
  return slice(x, -1, h * stride + skip, h * stride + skip + size);
}

Tensor turned(const Tensor& x, const nn::Context& context) {
  return squeeze(rope(unsqueeze(x, 2), context.rope.cos, context.rope.sin, RopeLayout::interleaved),
                 2);
}

// Equations 9 to 19 of arXiv:2405.04434, head by head.
Tensor by_equations(const nn::LatentAttention& a, const nn::LatentAttentionShape& s,
                    const Tensor& x, const nn::Context& context) {
  const Tensor cq = a.wq_a ? (*a.q_norm)((*a.wq_a)(x)) : x;
  const Tensor q = linear(cq, a.wq.weight);
  const Tensor down = linear(x, a.wkv_a.weight, a.wkv_a.bias);
  const Tensor c = a.kv_norm(slice(down, -1, 0, 9));
  const Tensor shared = turned(slice(down, -1, 9, 13), context);
  const Tensor up = linear(c, a.wkv_b.weight);
  std::vector<double> hidden;
  for (int64_t i = 0; i < tokens * tokens; ++i) {
    hidden.push_back(i % tokens <= i / tokens ? 0 : -1e30);
  }
  const Tensor mask = tensor_of(hidden, {tokens, tokens});
  TensorList heads;
  for (int64_t h = 0; h < s.heads; ++h) {
    const Tensor qh = concat({part(q, h, 9, 0, 5), turned(part(q, h, 9, 5, 4), context)}, -1);
    const Tensor kh = concat({part(up, h, 5 + s.value_dim, 0, 5), shared}, -1);
    const Tensor vh = part(up, h, 5 + s.value_dim, 5, s.value_dim);
    heads.push_back(matmul(softmax(matmul(qh, transpose(kh)) / 3.0 + mask), vh));  // √9
  }
  return linear(concat(heads, int64_t{-1}), a.wo.weight, a.wo.bias);
}

TEST(LatentAttention, FollowsTheEquationsHeadByHead) {
  const Tensor x = random_tensor({2, tokens, 20}, 1);
  const nn::Context context = rotated_context(DType::f64);
  for (const int64_t q_rank : {0, 6}) {
    for (const int64_t value_dim : {3, 9, 12}) {  // narrower than a key, as wide, wider
      nn::LatentAttentionShape shape = shape_of(q_rank, value_dim);
      shape.bias = q_rank > 0 ? nn::Bias::yes : nn::Bias::no;
      const auto layer = layer_of(shape);
      EXPECT_LE(difference((*layer)(x, context), by_equations(*layer, shape, x, context)), 1e-12)
          << q_rank << ", " << value_dim;
    }
  }
}

TEST(LatentAttention, GradientsOfInputAndEveryWeightMatchFiniteDifferences) {
  const auto layer = layer_of(shape_of(6, 4));
  std::vector<nn::Slot> slots = layer->slots();
  TensorList inputs = {random_tensor({2, tokens, 20}, 1)};
  for (const nn::Slot& slot : slots) {
    inputs.push_back(slot.tensor());
  }
  const nn::Context context = rotated_context(DType::f64);
  EXPECT_EQ(gradcheck(
                [&](const TensorList& in) {
                  for (size_t i = 0; i < slots.size(); ++i) {
                    slots[i].set(in[i + 1]);
                  }
                  return TensorList{(*layer)(in[0], context)};
                },
                inputs),
            "");
}

TEST(LatentAttention, CachesTheLatentAndTheSharedKeyAlone) {
  const nn::LatentAttentionShape shape = shape_of(6, 12);
  const auto layer = layer_of(shape);
  const Tensor x = random_tensor({2, tokens, 20}, 1);
  const Tensor whole = (*layer)(x, rotated_context(DType::f64));
  nn::PagedCache cache({1, 2, 8, 1, 13, 0}, DType::f64, cpu_device);
  EXPECT_EQ(cache.bytes(), 2 * 8 * (9 + 4) * 8);
  for (int32_t row = 0; row < 2; ++row) {
    const std::vector<int32_t> table = {row};
    int64_t read = 0;
    for (const int64_t count : {3, 1, 2, 1}) {  // expanded and absorbed in turns
      nn::PagedRows rows(cache, {{table, read}});
      nn::Context context = rotated_context(DType::f64, read, count);
      context.cache = &rows;
      const Tensor part = slice(slice(x, 0, row, row + 1), 1, read, read + count);
      const Tensor expected = slice(slice(whole, 0, row, row + 1), 1, read, read + count);
      EXPECT_LE(difference((*layer)(part, context), expected), 1e-12) << read;
      read += count;
    }
  }
}

TEST(LatentAttention, RefusesAnOddNumberOfTurningFeatures) {
  nn::LatentAttentionShape shape = shape_of(0, 4);
  shape.rope_dim = 3;
  expect_error([&] { layer_of(shape); }, "rope_dim is 3; give an even number above 0");
}

}  // namespace
}  // namespace ingot::testing
