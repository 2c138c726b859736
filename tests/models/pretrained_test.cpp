#include "ingot/models/pretrained.h"

#include <gtest/gtest.h>

#include "ingot/base/files.h"
#include "ingot/base/json.h"
#include "ingot/base/json_library.h"
#include "ingot/io/safetensors_shards.h"
#include "ingot/nn/initialise.h"
#include "ingot/tensor/factories.h"
#include "tests/support/op_case.h"
#include "tests/support/paths.h"

namespace ingot::testing {
namespace {

DecoderConfig tiny(const std::string& architecture) {
  DecoderConfig c;
  c.architecture = architecture;
  c.vocab = 40;
  c.width = 16;
  c.layers = 2;
  c.heads = 4;
  c.hidden = 24;
  c.context = 32;
  return c;
}

std::unique_ptr<Decoder> made(const DecoderConfig& config, DType dtype = DType::f32) {
  auto model = std::make_unique<Decoder>(config, dtype);
  nn::initialise(*model, {"normal", 0.3}, 11);
  return model;
}

const Tensor& some_ids() {
  static const Tensor ids = tensor_of(std::vector<int64_t>{1, 5, 39, 0, 7, 7, 12, 3}, {2, 4});
  return ids;
}

void expect_same_after_saving(const DecoderConfig& config, DType dtype, const std::string& type) {
  const TemporaryFolder folder;
  const auto model = made(config, dtype);
  save_pretrained(*model, folder.path());
  const Pretrained loaded = load_pretrained(folder.path());
  EXPECT_EQ(parse_json(loaded.config, "config")["model_type"], type);
  EXPECT_EQ(loaded.model->dtype(), dtype);
  EXPECT_TRUE(same_bits(loaded.model->logits(some_ids()), model->logits(some_ids()))) << type;
}

TEST(Pretrained, SavingAndLoadingReproducesLogitsBitForBit) {
  expect_same_after_saving(tiny("gpt2"), DType::f32, "gpt2");
  expect_same_after_saving(tiny("llama"), DType::bf16, "llama");
  DecoderConfig llama = tiny("llama");
  llama.kv_heads = 2;
  llama.head_dim = 6;
  llama.tied = true;
  llama.attention_bias = llama.output_bias = llama.mlp_bias = true;
  llama.activation = "geglu_tanh";
  llama.rope.scaling = "llama3";
  llama.rope.factor = 4;
  llama.rope.original_context = 8;
  expect_same_after_saving(llama, DType::f32, "llama");
  llama.rope.scaling = "yarn";
  expect_same_after_saving(llama, DType::f32, "llama");
}

TEST(Pretrained, SavesWhatNoPublishedArchitectureDescribesUnderItsOwnNames) {
  DecoderConfig c = tiny("llama");
  c.positions = "alibi";
  c.qk_norm = true;
  c.norm_position = "sandwich";
  c.window = 3;
  c.logit_softcap = 30;
  expect_same_after_saving(c, DType::f32, "ingot");
  c.positions = "sinusoidal";
  c.activation = "relu_squared";
  c.norm = "layer";
  c.norm_position = "post";
  expect_same_after_saving(c, DType::f32, "ingot");
}

TEST(Pretrained, KeepsConfigurationKeysItDoesNotKnow) {
  const TemporaryFolder folder;
  SaveOptions options;
  options.base_config = R"({"transformers_version": "4.57.1", "my_key": [1, 2], "n_embd": 99})";
  options.eos_token = 2;
  save_pretrained(*made(tiny("gpt2")), folder.path(), options);
  const auto config = parse_json_file(folder / "config.json");
  EXPECT_EQ(config["transformers_version"], "4.57.1");
  EXPECT_EQ(config["my_key"].dump(), "[1,2]");
  EXPECT_EQ(config["n_embd"], 16);
  EXPECT_EQ(config["torch_dtype"], "float32");
  EXPECT_EQ(parse_json_file(folder / "generation_config.json")["eos_token_id"], 2);
}

TEST(Pretrained, StoresGpt2WeightsAsTheyArePublished) {
  const TemporaryFolder folder;
  const auto model = made(tiny("gpt2"));
  save_pretrained(*model, folder.path());
  const SafetensorsSet stored(folder.path());
  const Tensor joined = stored.tensor("transformer.h.1.attn.c_attn.weight");
  ASSERT_EQ(joined.shape(), (Shape{16, 48}));
  // Row i, column 16 + j of the joined [In, 3 Out] map is row j, column i of the keys' [Out, In].
  EXPECT_EQ(joined.values<float>()[3 * 48 + 16 + 5],
            model->layers[1]->attention->wk.weight.values<float>()[5 * 16 + 3]);
  EXPECT_FALSE(stored.contains("lm_head.weight"));
}

void rewrite(const std::filesystem::path& folder, const std::string& key,
             const nlohmann::json& value) {
  auto config = parse_json_file(folder / "config.json");
  config[key] = value;
  write_file(folder / "config.json", config.dump());
}

TEST(Pretrained, RefusesFoldersThatItWouldGetWrong) {
  const TemporaryFolder folder;
  const auto load = [&] { load_pretrained(folder.path()); };
  save_pretrained(*made(tiny("llama")), folder.path());
  rewrite(folder.path(), "intermediate_size", 20);
  expect_error(load,
               "shape: model.layers.0.mlp.gate_proj.weight is [24, 16], the configuration says "
               "[20, 16]");
  rewrite(folder.path(), "intermediate_size", 24);
  rewrite(folder.path(), "num_hidden_layers", 1);
  expect_error(load, "unexpected: model.layers.1.mlp.gate_proj.weight [24, 16]");
  rewrite(folder.path(), "num_hidden_layers", 3);
  expect_error(load, "missing: model.layers.2.mlp.gate_proj.weight [24, 16]");
  rewrite(folder.path(), "hidden_act", "tanh");
  expect_error(load, "config.json: activation 'tanh' is not known; known are gelu_pytorch_tanh, ");
  rewrite(folder.path(), "hidden_act", "silu");
  rewrite(folder.path(), "rope_scaling", {{"rope_type", "spiral"}});
  expect_error(load, "rope_scaling of type 'spiral' is not known");
  rewrite(folder.path(), "model_type", "mamba");
  expect_error(
      load,
      "model: model_type 'mamba' is not known; the nearest is 'llama', known are gpt2, llama, ");
}

TEST(Pretrained, ReadsRotaryParametersOfNewerConfigurations) {
  const TemporaryFolder folder;
  DecoderConfig c = tiny("llama");
  c.rope.base = 5000;
  c.rope.scaling = "linear";
  c.rope.factor = 2;
  const auto model = made(c);
  save_pretrained(*model, folder.path());
  auto config = parse_json_file(folder / "config.json");
  config.erase("rope_theta");
  config.erase("rope_scaling");
  config["rope_parameters"] = {{"rope_type", "linear"}, {"factor", 2.0}, {"rope_theta", 5000.0}};
  write_file(folder / "config.json", config.dump());
  EXPECT_TRUE(same_bits(load_pretrained(folder.path()).model->logits(some_ids()),
                        model->logits(some_ids())));
}

}  // namespace
}  // namespace ingot::testing
