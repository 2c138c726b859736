#include <gtest/gtest.h>

#include "ingot/autograd/grad_mode.h"
#include "ingot/models/decoder.h"
#include "ingot/nn/initialise.h"
#include "ingot/nn/paged_cache.h"
#include "ingot/ops/linear.h"
#include "ingot/ops/shape.h"
#include "ingot/tensor/copy.h"
#include "ingot/tensor/factories.h"
#include "tests/support/op_case.h"

namespace ingot::testing {
namespace {

DecoderConfig tiny(const std::string& architecture) {
  DecoderConfig c;
  c.architecture = architecture;
  c.vocab = 40;
  c.width = 32;
  c.layers = 2;
  c.heads = 4;
  c.context = 32;
  if (architecture == "mixtral") {
    c.moe.experts = 4;
    c.moe.top_k = 2;
  }
  return c;
}

std::unique_ptr<Decoder> made(const DecoderConfig& config) {
  auto model = std::make_unique<Decoder>(config);
  nn::initialise(*model, {"normal", 0.2}, 11);
  return model;
}

// Weights of linear maps as their codes stand for them.
class Rounding : public nn::Visitor {
 protected:
  void on_parameter(const std::string&, Tensor&, nn::Role) override {}
  void on_module(const std::string&, nn::Module& module) override {
    if (auto* map = dynamic_cast<nn::Linear*>(&module)) {
      copy_into(map->weight, dense_weight(int8_weight(map->weight), DType::f32));
    }
  }
};

Tensor some_ids() {
  std::vector<int64_t> ids;
  for (int64_t i = 0; i < 40; ++i) {
    ids.push_back(i * 7 % 40);
  }
  return tensor_of(ids, {2, 20});
}

TEST(Int8Weights, GiveTheLogitsOfTheWeightsTheyStandFor) {
  const NoGrad quiet;
  for (const char* architecture : {"gpt2", "llama", "mixtral"}) {
    for (const bool tied : {true, false}) {
      DecoderConfig c = tiny(architecture);
      c.tied = tied;
      const auto exact = made(c);
      Rounding rounding;
      exact->visit(rounding);
      const Tensor table = dense_weight(int8_weight(exact->output_weight()), DType::f32);
      const Tensor expected = linear(exact->hidden(some_ids()), table);
      const auto coded = made(c);
      coded->to_int8();
      coded->to_int8();  // changes nothing more
      // Largest seen: 1.2e-6.
      EXPECT_LE(difference(coded->logits(some_ids()), expected), 1e-5)
          << architecture << ", tied " << tied;
    }
  }
}

TEST(Int8Weights, DecodeTokenByTokenAsTheyReadTheWholeText) {
  const NoGrad quiet;
  for (const char* architecture : {"gpt2", "llama", "mixtral"}) {
    const auto model = made(tiny(architecture));
    model->to_int8();
    const Tensor whole = model->hidden(some_ids());
    nn::PagedCache cache(model->cache_shape(2, 32), DType::f32, cpu_device);
    const std::vector<int32_t> first = {0}, second = {1};
    for (int64_t t = 0; t < 20; ++t) {
      nn::PagedRows rows(cache, {{first, t}, {second, t}});
      const Tensor one = model->hidden(slice(some_ids(), 1, t, t + 1), rows);
      EXPECT_LE(difference(one, contiguous(slice(whole, 1, t, t + 1))), 1e-5)
          << architecture << " " << t;
    }
  }
}

TEST(Int8Weights, TakeABitMoreThanAByteEach) {
  Decoder model(tiny("llama"), DType::bf16);
  double before = 0;
  for (const auto& layer : model.layers) {
    before += static_cast<double>(layer->attention->wq.weight.bytes());
  }
  model.to_int8();
  double after = 0;
  for (const auto& layer : model.layers) {
    const Int8Weight& coded = layer->attention->wq.coded;
    after += static_cast<double>(coded.codes.bytes() + coded.scales.bytes());
    EXPECT_FALSE(layer->attention->wq.weight.defined());
  }
  EXPECT_EQ(after, before / 2 * (1 + 4.0 / 32));  // rows of 32 share one scale
}

}  // namespace
}  // namespace ingot::testing
