#include "ingot/nn/embedding.h"

#include <gtest/gtest.h>

#include "ingot/autograd/backward.h"
#include "ingot/autograd/record.h"
#include "ingot/nn/initialise.h"
#include "ingot/ops/index.h"
#include "ingot/ops/matmul.h"
#include "ingot/ops/shape.h"
#include "ingot/tensor/factories.h"
#include "tests/support/op_case.h"

namespace ingot::testing {
namespace {

const std::vector<int64_t> some_ids = {3, 1, 3, 0, 6, 3};

TEST(Embedding, BackwardIsTheOneHotProduct) {
  nn::Embedding layer(7, 5, DType::f64, cpu_device);
  nn::initialise(layer, {}, 1);
  layer.require_gradients();
  const Tensor ids = tensor_of(some_ids, {2, 3});
  const Tensor dy = random_tensor({2, 3, 5}, 2);
  backward(layer(ids), dy);
  const Tensor hot = reshape(one_hot(ids, 7, DType::f64), {6, 7});
  EXPECT_LE(difference(grad(layer.weight), matmul(transpose(hot), reshape(dy, {6, 5}))), 1e-12);
}

TEST(Embedding, LooksUpPaddingWithoutTeachingIt) {
  nn::Embedding layer(7, 5, DType::f64, cpu_device, 3);
  nn::initialise(layer, {}, 1);
  const Tensor ids = tensor_of(some_ids, {2, 3});
  const Tensor plain = layer(ids);
  layer.require_gradients();
  const Tensor y = layer(ids);
  EXPECT_TRUE(same_bits(y, plain));
  backward(y, full({2, 3, 5}, 1, DType::f64));
  const Tensor g = grad(layer.weight);
  EXPECT_EQ(g.values<double>()[3 * 5], 0);
  EXPECT_EQ(g.values<double>()[1 * 5], 1);
  EXPECT_EQ(g.values<double>()[2 * 5], 0);
}

}  // namespace
}  // namespace ingot::testing
