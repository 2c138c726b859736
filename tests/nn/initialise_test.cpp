#include "ingot/nn/initialise.h"

#include <gtest/gtest.h>

#include <cmath>

#include "ingot/nn/linear.h"
#include "ingot/nn/transformer.h"
#include "ingot/ops/elementwise.h"
#include "ingot/tensor/copy.h"
#include "ingot/tensor/factories.h"
#include "tests/support/op_case.h"

namespace ingot::testing {
namespace {

using nn::InitConfig;

double variance(const Tensor& x) {
  const Tensor wide = converted(x, DType::f64);
  double sum = 0;
  double squares = 0;
  for (const double value : wide.values<double>()) {
    sum += value;
    squares += value * value;
  }
  const auto count = static_cast<double>(wide.elements());
  return squares / count - (sum / count) * (sum / count);
}

class Layers : public nn::Module {
 public:
  explicit Layers(int64_t count, int64_t width) {
    for (int64_t i = 0; i < count; ++i) {
      all.push_back(
          std::make_unique<nn::Linear>(width, width, nn::Bias::no, DType::f32, cpu_device));
    }
  }
  void visit(nn::Visitor& v) override { v("all", all); }
  std::vector<std::unique_ptr<nn::Linear>> all;
};

nn::TransformerOptions block_options() {
  nn::TransformerOptions o;
  o.attention.width = 256;
  o.attention.heads = 4;
  o.attention.kv_heads = 4;
  o.attention.head_dim = 64;
  o.mlp.width = 256;
  o.mlp.hidden = 512;
  return o;
}

class Blocks : public nn::Module {
 public:
  Blocks() {
    for (int i = 0; i < 3; ++i) {
      layers.push_back(
          std::make_unique<nn::TransformerBlock>(block_options(), DType::f32, cpu_device));
    }
  }
  void visit(nn::Visitor& v) override { v("layers", layers); }
  std::vector<std::unique_ptr<nn::TransformerBlock>> layers;
};

// The variance of sample variances of n draws is about 2/n of them: 2 % is several deviations here.
void expect_variance(const TensorDict& values, const std::string& name, double expected) {
  EXPECT_NEAR(variance(values.at(name)) / expected, 1, 0.02) << name;
}

TEST(Initialise, VariancesFollowTheFormulas) {
  const Blocks blocks;
  const std::string up = "layers.1.mlp.up.weight";      // [512, 256]
  const std::string down = "layers.1.mlp.down.weight";  // [256, 512]
  expect_variance(initial_values(blocks, {"normal", 0.05}, 1), down, 0.05 * 0.05);
  expect_variance(initial_values(blocks, {"gpt2", 0.05}, 1), up, 0.05 * 0.05);
  expect_variance(initial_values(blocks, {"gpt2", 0.05}, 1), down, 0.05 * 0.05 / 6);
  expect_variance(initial_values(blocks, {"gpt2", 0.05}, 1), "layers.2.attention.wo.weight",
                  0.05 * 0.05 / 6);
  expect_variance(initial_values(blocks, {"xavier", 0.05}, 1), down, 2.0 / (256 + 512));
  expect_variance(initial_values(blocks, {"xavier_normal", 0.05}, 1), down, 2.0 / (256 + 512));
  expect_variance(initial_values(blocks, {"kaiming", 0.05}, 1), down, 2.0 / 512);
  EXPECT_EQ(variance(initial_values(blocks, {}, 1).at("layers.0.mlp_norm.weight")), 0);
}

TEST(Initialise, AValueDependsOnSeedNameAndShapeAlone) {
  const TensorDict few = initial_values(Layers(1, 32), {}, 7);
  const TensorDict many = initial_values(Layers(3, 32), {}, 7);
  EXPECT_TRUE(same_bits(few.at("all.0.weight"), many.at("all.0.weight")));
  EXPECT_FALSE(same_bits(many.at("all.0.weight"), many.at("all.1.weight")));
  EXPECT_FALSE(
      same_bits(few.at("all.0.weight"), initial_values(Layers(1, 32), {}, 8).at("all.0.weight")));
}

TEST(Initialise, WritesTheSameValuesRoundedToTheParametersType) {
  Layers layers(2, 32);
  layers.to(DType::bf16);
  nn::initialise(layers, {"kaiming", 0.02}, 7);
  const TensorDict exact = initial_values(layers, {"kaiming", 0.02}, 7);
  EXPECT_EQ(exact.at("all.1.weight").dtype(), DType::f32);
  EXPECT_TRUE(same_bits(layers.all[1]->weight, converted(exact.at("all.1.weight"), DType::bf16)));
}

// Standard deviation of the activations after 50 layers of 512 ReLUs.
double deviation_after_fifty_layers(const InitConfig& config) {
  Layers layers(50, 512);
  nn::initialise(layers, config, 3);
  Tensor x = converted(random_tensor({64, 512}, 9), DType::f32);
  for (const auto& layer : layers.all) {
    x = relu((*layer)(x));
  }
  return std::sqrt(variance(x));
}

TEST(Initialise, KaimingKeepsADeepReluNetworkAlive) {
  const double kept = deviation_after_fifty_layers({"kaiming", 0.02});
  EXPECT_GE(kept, 0.5);
  EXPECT_LE(kept, 2);
  EXPECT_LT(deviation_after_fifty_layers({"normal", 0.01}), 1e-10);
}

}  // namespace
}  // namespace ingot::testing
