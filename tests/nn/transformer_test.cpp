#include "ingot/nn/transformer.h"

#include <gtest/gtest.h>

#include <cmath>

#include "ingot/autograd/backward.h"
#include "ingot/autograd/checkpoint.h"
#include "ingot/autograd/record.h"
#include "ingot/nn/initialise.h"
#include "ingot/nn/rotary.h"
#include "ingot/ops/elementwise.h"
#include "ingot/ops/index.h"
#include "ingot/ops/reduce.h"
#include "ingot/tensor/copy.h"
#include "ingot/tensor/factories.h"
#include "tests/support/op_case.h"

namespace ingot::testing {
namespace {

nn::TransformerOptions small_options() {
  nn::TransformerOptions o;
  o.attention.width = 16;
  o.attention.heads = 4;
  o.attention.kv_heads = 2;
  o.attention.head_dim = 4;
  o.attention.bias = nn::Bias::yes;
  o.mlp.width = 16;
  o.mlp.hidden = 20;
  return o;
}

std::unique_ptr<nn::TransformerBlock> block_of(const nn::TransformerOptions& options,
                                               DType dtype = DType::f64) {
  auto block = std::make_unique<nn::TransformerBlock>(options, dtype, cpu_device);
  nn::initialise(*block, {"normal", 0.3}, 5);
  return block;
}

nn::Context rotated_context(int64_t tokens, DType dtype) {
  nn::Context context;
  context.rope = nn::rotary_tables({}, arange(tokens, DType::i64), 4, 64, tokens, dtype);
  return context;
}

TEST(TransformerBlock, IsTheIdentityWithOutputMapsOfZero) {
  const auto block = block_of(small_options(), DType::f32);
  fill(block->attention->wo.weight, 0);
  fill(block->mlp->down.weight, 0);
  const Tensor x = converted(random_tensor({2, 7, 16}, 1), DType::f32);
  EXPECT_TRUE(same_bits((*block)(x, rotated_context(7, DType::f32)), x));
}

TEST(TransformerBlock, WithoutPositionsAndMaskPermutesWithItsInput) {
  nn::TransformerOptions options = small_options();
  options.attention.causal = false;
  const auto block = block_of(options);
  const Tensor x = random_tensor({2, 6, 16}, 1);
  const Tensor order = tensor_of(std::vector<int64_t>{4, 2, 5, 0, 1, 3}, {6});
  EXPECT_LE(
      difference((*block)(index_select(x, 1, order), {}), index_select((*block)(x, {}), 1, order)),
      1e-13);
}

TEST(TransformerBlock, PlacesItsNormsAsNamed) {
  const Tensor x = random_tensor({2, 6, 16}, 1);
  nn::TransformerOptions options = small_options();
  {
    const auto b = block_of(options);
    const Tensor s = x + (*b->attention)(b->attention_norm(x), {});
    EXPECT_LE(difference((*b)(x, {}), s + (*b->mlp)(b->mlp_norm(s))), 1e-13);
  }
  options.norm = nn::NormKind::layer;
  options.norm_position = nn::NormPosition::post;
  {
    const auto b = block_of(options);
    const Tensor s = b->attention_norm(x + (*b->attention)(x, {}));
    EXPECT_LE(difference((*b)(x, {}), b->mlp_norm(s + (*b->mlp)(s))), 1e-13);
  }
  options.norm_position = nn::NormPosition::sandwich;
  {
    const auto b = block_of(options);
    const Tensor s = x + (*b->attention_output_norm)((*b->attention)(b->attention_norm(x), {}));
    EXPECT_LE(difference((*b)(x, {}), s + (*b->mlp_output_norm)((*b->mlp)(b->mlp_norm(s)))), 1e-13);
  }
  options.norm_position = nn::NormPosition::pre;
  options.residual = false;
  {
    const auto b = block_of(options);
    const Tensor y = (*b->attention)(b->attention_norm(x), {});
    EXPECT_LE(difference((*b)(x, {}), (*b->mlp)(b->mlp_norm(y))), 1e-13);
  }
}

// The loss Σ w·y as a function of the block's parameters.
double projected(const nn::Block& block, const Tensor& x, const Tensor& w) {
  const NoGrad quiet;
  return sum(block(x, rotated_context(x.size(1), DType::f64)) * w).item();
}

TEST(TransformerBlock, GradientsOfEveryParameterMatchFiniteDifferences) {
  nn::TransformerOptions options = small_options();
  options.attention.qk_norm = nn::NormKind::rms;
  options.norm = nn::NormKind::layer;
  const auto block = block_of(options);
  block->require_gradients();
  const Tensor x = random_tensor({2, 5, 16}, 1);
  const Tensor w = random_tensor({2, 5, 16}, 2);
  backward((*block)(x, rotated_context(5, DType::f64)), w);
  for (auto& [name, parameter] : block->parameters()) {
    const Tensor direction = random_tensor(parameter.shape(), site_named(name));
    const Tensor start = copy_of(parameter);
    double ends[2];
    const double h = 1e-5;
    for (const int side : {0, 1}) {
      Tensor target = detach(parameter);
      copy_into(target, detach(start) + direction * (side == 0 ? -h : h));
      ends[side] = projected(*block, x, w);
      copy_into(target, start);
    }
    const double numeric = (ends[1] - ends[0]) / (2 * h);
    const double analytic = sum(grad(parameter) * direction).item();
    EXPECT_NEAR(analytic, numeric, 1e-6 * std::max(1.0, std::abs(numeric))) << name;
  }
}

struct Walk {
  TensorDict grads;
  int64_t peak = 0;
};

// Gradients of a stack of blocks, and the peak of memory above what was live before.
Walk walked(bool recompute) {
  nn::TransformerOptions options = small_options();
  options.dropout = 0.2;
  std::vector<std::unique_ptr<nn::TransformerBlock>> blocks;
  for (int i = 0; i < 4; ++i) {
    blocks.push_back(block_of(options, DType::f32));
    nn::name_dropout_sites(*blocks.back());
    blocks.back()->require_gradients();
    if (recompute) {
      blocks.back()->wrap(
          [](const nn::Block::Run& run, const Tensor& x) { return recomputed(run, x); });
    }
  }
  Tensor start = converted(random_tensor({4, 64, 16}, 1), DType::f32);
  require_grad(start);
  allocator(cpu_device).reset_peak();
  const int64_t before = allocator(cpu_device).stats().live_total;
  nn::Context context = rotated_context(64, DType::f32);
  context.randomness = {.seed = 3, .step = 2, .micro = 1, .training = true};
  Tensor x = start;
  for (const auto& block : blocks) {
    x = (*block)(x, context);
  }
  backward(sum(x));
  Walk out;
  out.peak = allocator(cpu_device).stats().peak_total - before;
  for (size_t i = 0; i < blocks.size(); ++i) {
    for (const auto& [name, parameter] : blocks[i]->parameters()) {
      out.grads.add(concat(i, ".", name), grad(parameter));
    }
  }
  return out;
}

TEST(Block, RecomputingGivesTheSameGradientsFromLessMemory) {
  const Walk kept = walked(false);
  const Walk again = walked(true);
  for (const auto& [name, g] : kept.grads) {
    EXPECT_TRUE(same_bits(again.grads.at(name), g)) << name;
  }
  EXPECT_LT(again.peak, kept.peak / 2) << "of " << kept.peak;
}

// Gradients of Σ y² and of what two layers of experts put aside, logits and choice of each.
TensorDict walked_with_routers(bool recompute) {
  nn::TransformerOptions options = small_options();
  options.moe.emplace();
  options.moe->router = {.width = 16, .experts = 4, .top_k = 2};
  options.moe->expert = options.mlp;
  const auto first = block_of(options, DType::f32);
  const auto second = block_of(options, DType::f32);
  nn::Context context = rotated_context(8, DType::f32);
  TensorList aside;
  context.aside = &aside;
  Tensor x = converted(random_tensor({2, 8, 16}, 1), DType::f32);
  require_grad(x);
  for (const auto& block : {first.get(), second.get()}) {
    block->require_gradients();
    if (recompute) {
      block->wrap([](const nn::Block::Run& run, const Tensor& in) { return recomputed(run, in); });
    }
  }
  const Tensor y = (*second)((*first)(x, context), context);
  EXPECT_EQ(aside.size(), 4U);
  EXPECT_EQ(aside[1].dtype(), DType::i64);
  backward(sum(square(y)) + sum(square(aside[0])) + sum(square(aside[2])));
  TensorDict out;
  for (const auto& [name, parameter] : first->parameters()) {
    out.add("0." + name, grad(parameter));
  }
  for (const auto& [name, parameter] : second->parameters()) {
    out.add("1." + name, grad(parameter));
  }
  return out;
}

TEST(Block, RecomputingPassesOnTheGradientsOfWhatIsPutAside) {
  const TensorDict kept = walked_with_routers(false);
  const TensorDict again = walked_with_routers(true);
  for (const auto& [name, g] : kept) {
    EXPECT_LE(difference(again.at(name), g), 1e-6) << name;  // sums in another order
  }
}

TEST(Block, RunsInsideEveryWrapperTheLastOutermost) {
  const auto block = block_of(small_options());
  std::string order;
  for (const char* label : {"a", "b"}) {
    block->wrap([&order, label](const nn::Block::Run& run, const Tensor& x) {
      order += label;
      TensorList results = run(x);
      order += label;
      return results;
    });
  }
  (*block)(random_tensor({1, 3, 16}, 1), {});
  EXPECT_EQ(order, "baab");
}

TEST(Mlp, ComputesEachActivationItNames) {
  for (const std::string& activation : nn::activation_names()) {
    nn::MlpOptions options{6, 9, nn::activation_named(activation), nn::Bias::yes};
    nn::Mlp mlp(options, DType::f64, cpu_device);
    nn::initialise(mlp, {"normal", 0.5}, 2);
    EXPECT_EQ(mlp.gate.has_value(), nn::is_gated(options.activation)) << activation;
    EXPECT_EQ(mlp(random_tensor({2, 6}, 3)).shape(), (Shape{2, 6})) << activation;
  }
  expect_error([] { nn::activation_named("swish"); }, "activation: no 'swish'; take one of gelu, ");
}

}  // namespace
}  // namespace ingot::testing
