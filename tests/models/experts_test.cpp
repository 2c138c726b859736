// The families with experts and latent attention: both ways between files and models, their
// configurations, and dense models made into ones with experts.
#include <gtest/gtest.h>

#include <cmath>

#include "ingot/base/files.h"
#include "ingot/base/json.h"
#include "ingot/base/json_library.h"
#include "ingot/io/safetensors_shards.h"
#include "ingot/models/architecture.h"
#include "ingot/models/pretrained.h"
#include "ingot/models/routing.h"
#include "ingot/models/upcycle.h"
#include "ingot/nn/initialise.h"
#include "ingot/tensor/copy.h"
#include "ingot/tensor/factories.h"
#include "tests/support/op_case.h"
#include "tests/support/paths.h"

namespace ingot::testing {
namespace {

const std::vector<std::string> families = {"mixtral", "qwen3_moe", "deepseek_v2", "deepseek_v3"};

DecoderConfig tiny(const std::string& architecture) {
  DecoderConfig c = start_of(architecture);
  c.vocab = 40;
  c.width = 16;
  c.layers = 3;
  c.heads = 4;
  c.hidden = 24;
  c.context = 32;
  c.moe.experts = architecture == "llama" ? 0 : 4;
  return c;
}

std::unique_ptr<Decoder> made(const DecoderConfig& config, DType dtype = DType::f32) {
  auto model = std::make_unique<Decoder>(config, dtype);
  nn::initialise(*model, {"normal", 0.3}, 11);
  for (const auto& layer : model->layers) {
    if (layer->moe && layer->moe->router.correction.defined()) {
      Tensor& correction = layer->moe->router.correction;
      copy_into(correction, converted(random_tensor(correction.shape(), 4, 0.1), DType::f32));
    }
  }
  return model;
}

const Tensor& some_ids() {
  static const Tensor ids = tensor_of(std::vector<int64_t>{1, 5, 39, 0, 7, 7, 12, 3}, {2, 4});
  return ids;
}

// Saves a model, reads it back and returns the model_type it was saved as.
std::string saved_as(const DecoderConfig& config, DType dtype = DType::f32) {
  const TemporaryFolder folder;
  const auto model = made(config, dtype);
  save_pretrained(*model, folder.path());
  const Pretrained loaded = load_pretrained(folder.path());
  EXPECT_EQ(loaded.model->dtype(), dtype);
  EXPECT_TRUE(same_bits(loaded.model->logits(some_ids()), model->logits(some_ids())));
  return parse_json(loaded.config, "config")["model_type"];
}

TEST(Experts, PublishedFoldersAreWrittenBackBitForBit) {
  const std::filesystem::path root = oracle_folder() / "models";
  if (!std::filesystem::is_directory(root)) {
    GTEST_SKIP() << "needs " << root << ": set INGOT_ORACLES to a folder with models/";
  }
  int tried = 0;
  for (const std::string& name : list_folder(root)) {
    if (!std::filesystem::exists(root / name / "config.json")) {
      continue;
    }
    const auto config = parse_json_file(root / name / "config.json");
    if (std::ranges::count(families, config["model_type"].get<std::string>()) == 0) {
      continue;
    }
    SCOPED_TRACE(name);
    ++tried;
    const TemporaryFolder folder;
    const Pretrained loaded = load_pretrained(root / name);
    SaveOptions options;
    options.base_config = loaded.config;
    save_pretrained(*loaded.model, folder.path(), options);
    const TensorDict before = SafetensorsSet(root / name).tensors();
    const TensorDict after = SafetensorsSet(folder.path()).tensors();
    EXPECT_EQ(after.size(), before.size());
    for (const auto& [tensor, value] : before) {
      ASSERT_TRUE(after.contains(tensor)) << tensor;
      EXPECT_TRUE(same_bits(after.at(tensor), value)) << tensor;
    }
    const auto again = parse_json_file(folder.path() / "config.json");
    EXPECT_EQ(again["model_type"], config["model_type"]);
    EXPECT_EQ(again["architectures"], config["architectures"]);
  }
  EXPECT_GT(tried, 0);
}

TEST(Experts, EveryFamilyIsSavedAsItselfAndReproducesItsLogits) {
  for (const std::string& family : families) {
    SCOPED_TRACE(family);
    EXPECT_EQ(saved_as(tiny(family)), family);
    EXPECT_EQ(saved_as(tiny(family), DType::bf16), family);
  }
  DecoderConfig qwen = tiny("qwen3_moe");
  qwen.moe.hidden = 10;
  qwen.moe.every = 2;
  qwen.moe.dense_first = 1;
  qwen.moe.renormalise = false;
  qwen.window = 3;
  qwen.attention_bias = qwen.output_bias = true;
  EXPECT_EQ(saved_as(qwen), "qwen3_moe");
  DecoderConfig v3 = tiny("deepseek_v3");
  v3.moe.groups = v3.moe.groups_kept = 2;
  v3.moe.shared = 2;
  v3.moe.dense_first = 1;
  v3.moe.scale = 1.5;
  v3.latent = {.kv_rank = 9, .q_rank = 7, .nope_dim = 3, .rope_dim = 4, .value_dim = 6};
  v3.rope.layout = "interleaved";
  v3.rope.scaling = "yarn";
  v3.rope.factor = 4;
  v3.rope.mscale = 0.7;
  v3.rope.mscale_all_dim = 0.9;
  v3.attention_bias = v3.output_bias = true;
  EXPECT_EQ(saved_as(v3), "deepseek_v3");
  DecoderConfig v2 = tiny("deepseek_v2");
  v2.moe.groups = 2;
  EXPECT_EQ(saved_as(v2), "deepseek_v2");
}

TEST(Experts, OthersAreSavedUnderOurOwnNames) {
  DecoderConfig c = tiny("mixtral");
  c.moe.shared = 1;
  EXPECT_EQ(saved_as(c), "ingot");
  c = tiny("qwen3_moe");
  c.moe.score = "sigmoid";
  c.moe.correction = true;
  EXPECT_EQ(saved_as(c), "ingot");
  c = tiny("deepseek_v3");
  c.moe.dense_layers = {1};
  EXPECT_EQ(saved_as(c), "ingot");
  c = tiny("llama");
  c.latent.kv_rank = 8;
  EXPECT_EQ(saved_as(c), "ingot");
}

// The published code's factor: (0.1 mscale_all_dim ln(factor) + 1)², under yarn alone.
TEST(Experts, LatentScoresAreLargerUnderYarn) {
  const LatentConfig latent = {.kv_rank = 8, .nope_dim = 5, .rope_dim = 4, .value_dim = 5};
  nn::RotaryConfig rope;
  rope.factor = 40;
  rope.mscale_all_dim = 0.8;
  EXPECT_DOUBLE_EQ(latent_shape(latent, rope).scale, 1 / 3.0);
  rope.scaling = "yarn";
  const double mscale = 1.295110356;  // 0.08 ln 40 + 1
  EXPECT_NEAR(latent_shape(latent, rope).scale, mscale * mscale / 3, 1e-9);
  rope.mscale_all_dim = 0;
  EXPECT_DOUBLE_EQ(latent_shape(latent, rope).scale, 1 / 3.0);
}

TEST(Experts, StandInTheLayersThatTheConfigNames) {
  MoeConfig c;
  c.experts = 4;
  c.every = 2;
  c.dense_first = 2;
  c.dense_layers = {5};
  std::vector<int64_t> found;
  for (int64_t layer = 0; layer < 10; ++layer) {
    if (has_experts(c, layer)) {
      found.push_back(layer);
    }
  }
  EXPECT_EQ(found, (std::vector<int64_t>{3, 7, 9}));
}

TEST(Experts, ContradictionsAreRefused) {
  const auto with = [](const std::function<void(DecoderConfig&)>& change) {
    return [change] {
      DecoderConfig c = tiny("mixtral");
      change(c);
      complete(c);
    };
  };
  expect_error(with([](auto& c) { c.moe.top_k = 5; }), "top_k is 5, experts is 4");
  expect_error(with([](auto& c) { c.moe.groups = 3; }), "experts is 4, groups is 3");
  expect_error(with([](auto& c) {
                 c.moe.groups = 4;
                 c.moe.groups_kept = 1;
               }),
               "groups_kept is 1 of 4 groups of 1, top_k is 2");
  expect_error(with([](auto& c) {
                 c.moe.groups = c.moe.groups_kept = 4;
                 c.moe.group_score = "best_two";
               }),
               "groups of one expert have no best two");
  expect_error(with([](auto& c) { c.latent.q_rank = 5; }), "but kv_rank is 0");
  expect_error(with([](auto& c) {
                 c.latent.kv_rank = 5;
                 c.latent.rope_dim = 3;
               }),
               "rope_dim must be even");
  expect_error(with([](auto& c) {
                 c.latent.kv_rank = 5;
                 c.window = 3;
               }),
               "model.latent: has none of window");
  expect_error(with([](auto& c) {
                 c.latent.kv_rank = 5;
                 c.positions = "alibi";
               }),
               "model.latent: takes positions rope or none: positions is alibi");
}

// The message of reading config.json of a family with one key changed.
void expect_refused(const std::string& family, const char* key, const nlohmann::json& value,
                    const std::string& message) {
  const TemporaryFolder folder;
  save_pretrained(*made(tiny(family)), folder.path());
  auto config = parse_json_file(folder.path() / "config.json");
  config[key] = value;
  write_file(folder.path() / "config.json", config.dump());
  expect_error([&] { load_pretrained(folder.path()); }, message);
}

TEST(Experts, ConfigurationsThatAreNotComputedAreRefused) {
  expect_refused("deepseek_v2", "topk_method", "best", "topk_method 'best' is not known");
  expect_refused("deepseek_v2", "mlp_bias", true, "'mlp_bias' is on");
  expect_refused("deepseek_v2", "moe_layer_freq", 2, "'moe_layer_freq' is on");
  expect_refused("deepseek_v2", "kv_lora_rank", 0, "kv_lora_rank: out of range: got 0");
  expect_refused("deepseek_v3", "scoring_func", "softmax", "scoring_func 'softmax' is not known");
  expect_refused("deepseek_v3", "n_group", 3, "experts is 4, groups is 3");
  expect_refused("mixtral", "num_experts_per_tok", 9, "top_k is 9, experts is 4");
  expect_refused("mixtral", "num_local_experts", -1, "num_local_experts: out of range: got -1");
  expect_refused("mixtral", "num_attention_heads", 0, "num_attention_heads: out of range");
  expect_refused("deepseek_v3", "q_lora_rank", -3, "latent.q_rank");
  expect_refused("deepseek_v3", "routed_scaling_factor", 0, "moe.scale");
  expect_refused("mixtral", "num_local_experts", 5,
                 "missing: model.layers.0.block_sparse_moe.experts.4.w1.weight [24, 16]");
  expect_refused("qwen3_moe", "mlp_only_layers", 3, "mlp_only_layers");
  expect_refused("qwen3_moe", "decoder_sparse_step", 0, "decoder_sparse_step: out of range");
}

MoeConfig four_experts() {
  MoeConfig moe;
  moe.experts = 4;
  return moe;
}

TEST(Upcycled, StartsWithTheLogitsOfTheDenseModel) {
  const auto dense = made(tiny("llama"));
  MoeConfig moe;
  moe.experts = 8;
  for (const char* score : {"softmax", "sigmoid"}) {
    for (const int64_t top_k : {1, 2, 5}) {
      moe.score = score;
      moe.top_k = top_k;
      moe.dense_first = 1;
      const auto model = upcycled(*dense, moe, 3);
      EXPECT_FALSE(model->layers[0]->moe);
      EXPECT_EQ(model->layers[1]->moe->experts.size(), 8U);
      // Rounding of the weighted sum: 3e-7 found.
      EXPECT_LE(difference(model->logits(some_ids()), dense->logits(some_ids())), 2e-6)
          << score << " " << top_k;
      EXPECT_FALSE(same_bits(model->layers[1]->moe->router.weight, zeros({8, 16}, DType::f32)));
    }
  }
  EXPECT_EQ(architecture_of(upcycled(*dense, four_experts(), 3)->config()).model_type, "mixtral");
}

TEST(Upcycled, RefusesWhatWouldNotStartEqual) {
  const auto dense = made(tiny("llama"));
  const auto with = [&](const std::function<void(MoeConfig&)>& change) {
    return [&dense, change] {
      MoeConfig moe = four_experts();
      change(moe);
      upcycled(*dense, moe, 1);
    };
  };
  expect_error(with([](auto& m) { m.experts = 0; }), "upcycle: moe.experts is 0");
  expect_error(with([](auto& m) { m.renormalise = false; }), "moe.renormalise is 0");
  expect_error(with([](auto& m) { m.scale = 2; }), "moe.scale is 2");
  expect_error(with([](auto& m) { m.shared = 1; }), "moe.shared is 1");
  expect_error(with([](auto& m) { m.hidden = 8; }), "moe.hidden is 8, the model's hidden is 24");
  expect_error([] { upcycled(*made(tiny("mixtral")), four_experts(), 1); },
               "upcycle: the model has experts already: moe.experts is 4");
  DecoderConfig biased = tiny("llama");
  biased.mlp_bias = true;
  expect_error([&] { upcycled(*made(biased), four_experts(), 1); }, "experts have no biases");
}

TEST(SteerRouters, MovesTheCorrectionsOfItsLayers) {
  DecoderConfig c = tiny("deepseek_v3");
  c.moe.dense_first = 1;
  const auto model = std::make_unique<Decoder>(c);
  std::vector<nn::Routed> routed;
  model->hidden(some_ids(), {}, routed);
  ASSERT_EQ(routed.size(), 2U);
  for (nn::Routed& layer : routed) {
    layer.chosen = tensor_of<int64_t>({0, 1, 0, 1, 0, 1, 0, 2, 0, 1, 0, 1, 0, 1, 0, 1}, {8, 2});
  }
  nn::ExpertLoads loads;
  loads.add(routed);
  steer_routers(*model, loads, 0.5);
  for (const int64_t layer : {1, 2}) {
    EXPECT_TRUE(same_bits(model->layers[static_cast<size_t>(layer)]->moe->router.correction,
                          tensor_of<float>({-0.5F, -0.5F, 0.5F, 0.5F}, {4})));
  }
}

}  // namespace
}  // namespace ingot::testing
