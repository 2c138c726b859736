// What is learnt besides the maps: vectors before the text, keys before the keys, moves of what a
// layer gives.
#include "ingot/peft/prompt.h"

#include <gtest/gtest.h>

#include "ingot/autograd/backward.h"
#include "ingot/autograd/record.h"
#include "ingot/models/decoder.h"
#include "ingot/nn/initialise.h"
#include "ingot/ops/elementwise.h"
#include "ingot/ops/reduce.h"
#include "ingot/ops/shape.h"
#include "ingot/peft/loreft.h"
#include "ingot/tensor/copy.h"
#include "ingot/tensor/factories.h"
#include "tests/generate/paged_texts.h"
#include "tests/support/op_case.h"

namespace ingot::testing {
namespace {

using namespace peft;

std::unique_ptr<Decoder> tiny(const std::string& positions, DType dtype = DType::f64) {
  const auto c = std::make_unique<DecoderConfig>();
  c->vocab = 19;
  c->width = 16;
  c->layers = 2;
  c->heads = 4;
  c->kv_heads = 2;
  c->hidden = 24;
  c->context = 48;
  c->positions = positions;
  auto model = std::make_unique<Decoder>(*c, dtype);
  nn::initialise(*model, {"normal", 0.3}, 3);
  return model;
}

Tensor ids_of(const std::vector<int64_t>& ids, int64_t rows = 1) {
  return tensor_of(ids, {rows, static_cast<int64_t>(ids.size()) / rows});
}

TEST(SoftPrompt, OfTokensIsThatTextBeforeEveryOther) {
  for (const char* positions : {"rope", "learned", "sinusoidal", "alibi"}) {
    const auto model = tiny(positions);
    const Tensor hard = slice(model->logits(ids_of({4, 9, 2, 7, 1, 11})), 1, 3, 6);
    SoftPrompt prompt(model->embedding.weight, {4, 9, 2});
    model->before_text = [&prompt] { return prompt(); };
    EXPECT_LE(difference(model->logits(ids_of({7, 1, 11})), hard), 1e-12) << positions;
    prompt.active = false;
    model->before_text = nullptr;
  }
}

TEST(SoftPrompt, TrainsItsVectorsAlone) {
  const auto model = tiny("rope");
  SoftPrompt prompt(3, 16, 0.3, 1, DType::f64, cpu_device);
  EXPECT_EQ(prompt.count(), 3 * 16);
  prompt.require_gradients();
  model->before_text = [&prompt] { return prompt(); };
  backward(sum(square(model->hidden(ids_of({7, 1, 11, 5}, 2)))));
  EXPECT_GT(norm(grad(prompt.vectors)).item(), 0);
  expect_error(
      [&] {
        BatchInfo info;
        info.documents = zeros({1, 2}, DType::i32);
        model->hidden(ids_of({1, 2}), info);
      },
      "decoder: learnt vectors before a text go with one document a row");
}

// Token by token from pages as all at once, prompts of several pages too.
void expect_decodes_alike(const Decoder& model) {
  const std::vector<Tokens> prompts = {
      {3, 5, 7, 2}, {8, 1}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 8, 7, 6, 5}};
  PagedTexts texts(model, prompts, 8);
  for (const int64_t next : {6, 11, 4}) {
    for (size_t row = 0; row < prompts.size(); ++row) {
      const NoGrad quiet;
      const Tokens& text = texts.tokens(row);
      const Tensor whole = model.logits(ids_of(text));
      const int64_t last = static_cast<int64_t>(text.size());
      const Tensor expected = reshape(slice(whole, 1, last - 1, last), {19});
      EXPECT_LE(difference(texts.logits(row), converted(expected, DType::f32)), 2e-6);
    }
    texts.feed({next, next + 1, next});
  }
}

TEST(SoftPrompt, DecodesFromACacheAsInTraining) {
  for (const char* positions : {"rope", "learned"}) {
    const auto model = tiny(positions);
    const SoftPrompt prompt(3, 16, 0.5, 1, DType::f64, cpu_device);
    model->before_text = [&prompt] { return prompt(); };
    expect_decodes_alike(*model);
  }
}

TEST(PrefixTuning, DecodesFromACacheAsInTraining) {
  const auto model = tiny("rope");
  const PrefixTuning prefix(*model, 3, 0.5, 1, DType::f64, cpu_device);
  expect_decodes_alike(*model);
}

TEST(PrefixTuning, HasKeysAndValuesOfEveryLayerAndLeavesNothing) {
  const auto model = tiny("rope");
  const Tensor ids = ids_of({7, 1, 11, 5}, 2);
  const Tensor before = model->hidden(ids);
  {
    PrefixTuning prefix(*model, 5, 0.5, 1, DType::f64, cpu_device);
    EXPECT_EQ(prefix.count(), 2 * 2 * 5 * 2 * 4);  // layers, k and v, tokens, kv heads, head_dim
    prefix.require_gradients();
    const Tensor with = model->hidden(ids);
    EXPECT_GT(difference(with, before), 1e-3);
    backward(sum(square(with)));
    for (const auto& [name, p] : prefix.parameters()) {
      EXPECT_GT(norm(grad(p)).item(), 0) << name;
    }
    prefix.set_active(false);
    EXPECT_TRUE(same_bits(detach(model->hidden(ids)), before));
  }
  EXPECT_TRUE(same_bits(model->hidden(ids), before));
  nn::Norm none(nn::NormKind::rms, 8, 1e-5, DType::f64, cpu_device);
  expect_error([&] { PrefixTuning(none, 2, 0.1, 1, DType::f64, cpu_device); },
               "prefix tuning: the model has no attention that takes keys besides its own");
}

TEST(Loreft, IsItsFormulaAtItsPlacesAlone) {
  Loreft reft(8, 3, {1, "x"}, DType::f64, cpu_device);
  EXPECT_LT(reft.distance_from_orthonormal(), 1e-12);
  const Tensor h = random_tensor({2, 5, 8}, 4);
  EXPECT_LE(difference(reft(h), h), 1e-12);  // W starts at R
  copy_into(reft.weight, random_tensor({3, 8}, 5));
  copy_into(reft.bias, random_tensor({3}, 6));
  const Tensor places = prompt_places({5, 2}, 5, 1, 2, DType::f64);
  const std::vector<double> expected = {1, 0, 0, 1, 1, 1, 1, 0, 0, 0};
  EXPECT_TRUE(same_bits(places, tensor_of(expected, {2, 5})));
  const Tensor got = reft(h, places);
  for (int64_t b = 0; b < 2; ++b) {
    for (int64_t t = 0; t < 5; ++t) {
      for (int64_t d = 0; d < 8; ++d) {
        const auto at = [&](const Tensor& x, int64_t i, int64_t j) {
          return x.values<double>()[static_cast<size_t>(i * 8 + j)];
        };
        double moved = at(h, b * 5 + t, d);
        for (int64_t k = 0; k < 3; ++k) {
          double inner = reft.bias.values<double>()[static_cast<size_t>(k)];
          for (int64_t e = 0; e < 8; ++e) {
            inner += (at(reft.weight, k, e) - at(reft.rotation, k, e)) * at(h, b * 5 + t, e);
          }
          moved += expected[static_cast<size_t>(b * 5 + t)] * at(reft.rotation, k, d) * inner;
        }
        EXPECT_NEAR(at(got, b * 5 + t, d), moved, 1e-12);
      }
    }
  }
  copy_into(reft.rotation, reft.rotation + random_tensor({3, 8}, 7, 0.1));
  EXPECT_GT(reft.distance_from_orthonormal(), 1e-2);
  reft.orthonormalise();
  EXPECT_LT(reft.distance_from_orthonormal(), 1e-12);
  expect_error(
      [] {
        Loreft(8, 9, {1, "x"}, DType::f64, cpu_device);
      },
      "peft.rank: a subspace has at most the model's width: rank is 9, width is 8");
}

}  // namespace
}  // namespace ingot::testing
