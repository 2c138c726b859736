#include "ingot/peft/published.h"

#include <gtest/gtest.h>

#include <fstream>

#include "ingot/base/files.h"
#include "ingot/base/json.h"
#include "ingot/base/json_library.h"
#include "ingot/io/safetensors.h"
#include "ingot/ops/elementwise.h"
#include "ingot/ops/matmul.h"
#include "ingot/ops/shape.h"
#include "ingot/peft/start.h"
#include "ingot/tensor/copy.h"
#include "tests/peft/tiny_model.h"
#include "tests/support/paths.h"

namespace ingot::testing {
namespace {

using namespace peft;

Adapters::Options wide() {
  Adapters::Options out;
  out.dtype = DType::f64;
  return out;
}

// The names of a Llama; or one where q, k and v are joined, in turns of so many heads.
PublishedMaps llama_maps() {
  PublishedMaps out;
  for (const int layer : {0, 1}) {
    const std::string theirs = concat("model.layers.", layer, ".");
    const std::string ours = concat("layers.", layer, ".");
    const auto add = [&](const char* module, const char* path, int64_t rows) {
      out.push_back({theirs + module, {ours + path}, {rows}, false, 1});
    };
    add("self_attn.q_proj", "attention.wq", 8);
    add("self_attn.k_proj", "attention.wk", 8);
    add("self_attn.v_proj", "attention.wv", 8);
    add("self_attn.o_proj", "attention.wo", 8);
    add("mlp.gate_proj", "mlp.gate", 12);
    add("mlp.up_proj", "mlp.up", 12);
    add("mlp.down_proj", "mlp.down", 8);
  }
  return out;
}

PublishedMaps joined_maps(int64_t alternating) {
  PublishedMaps out;
  for (const int layer : {0, 1}) {
    const std::string a = concat("layers.", layer, ".attention.");
    out.push_back({concat("h.", layer, ".attn.qkv"),
                   {a + "wq", a + "wk", a + "wv"},
                   {8, 8, 8},
                   false,
                   alternating});
  }
  return out;
}

PeftConfig config(const std::string& kind, std::vector<std::string> targets) {
  PeftConfig out;
  out.kind = kind;
  out.rank = 2;
  out.alpha = 6;
  out.width = 3;
  out.targets = std::move(targets);
  return out;
}

void disturb(Adapters& adapters) {
  uint64_t seed = 5;
  for (const auto& [name, p] : adapters.parameters()) {
    Tensor target = p;
    copy_into(target, converted(p, DType::f64) + random_tensor(p.shape(), seed++, 0.2));
  }
}

nlohmann::json config_json(const std::filesystem::path& folder) {
  return parse_json_file(folder / "adapter_config.json");
}

TEST(PublishedAdapters, AreWhatWasWritten) {
  const TemporaryFolder folder;
  const std::map<std::string, std::vector<std::string>> all = {
      {"lora", {"layers.**"}}, {"dora", {"wq", "down"}}, {"ia3", {}}, {"bottleneck", {}}};
  for (const auto& [kind, targets] : all) {
    TinyLayers model;
    Tensor with;
    {
      Adapters adapters(model, config(kind, targets), wide());
      disturb(adapters);
      with = model(tiny_input());
      save_adapter(adapters, llama_maps(), folder / kind, {"some/base", "abc"});
    }
    const AdapterFolder read = read_adapter_folder(folder / kind);
    EXPECT_EQ(read.config.kind, kind);
    EXPECT_EQ(read.base_name, "some/base");
    const auto adapters = load_adapter(model, llama_maps(), read, wide(), "abc");
    EXPECT_LE(difference(model(tiny_input()), with), 1e-14) << kind;
  }
}

TEST(PublishedAdapters, HaveTheNamesAndKeysOfPeft) {
  const TemporaryFolder folder;
  TinyLayers model;
  PeftConfig c = config("dora", {"layers.**.wq", "layers.0.mlp.down"});
  c.rslora = true;
  Adapters adapters(model, c, wide());
  save_adapter(adapters, llama_maps(), folder / "a", {"some/base", ""});
  const auto json = config_json(folder / "a");
  EXPECT_EQ(json["peft_type"], "LORA");
  EXPECT_EQ(json["r"], 2);
  EXPECT_EQ(json["lora_alpha"], 6);
  EXPECT_EQ(json["use_dora"], true);
  EXPECT_EQ(json["use_rslora"], true);
  EXPECT_EQ(json["bias"], "none");
  EXPECT_EQ(json["fan_in_fan_out"], false);
  EXPECT_EQ(json["base_model_name_or_path"], "some/base");
  EXPECT_EQ(json["target_modules"], (nlohmann::json{"model.layers.0.mlp.down_proj", "q_proj"}));
  const SafetensorsFile file((folder / "a") / "adapter_model.safetensors");
  const std::string q = "base_model.model.model.layers.1.self_attn.q_proj.";
  EXPECT_EQ(file.tensor(q + "lora_A.weight").shape(), (Shape{2, 8}));
  EXPECT_EQ(file.tensor(q + "lora_B.weight").shape(), (Shape{8, 2}));
  EXPECT_EQ(file.tensor(q + "lora_magnitude_vector").shape(), (Shape{8}));
  EXPECT_EQ(file.entries().size(), 9U);

  Adapters factors(model, config("ia3", {}), wide());
  save_adapter(factors, llama_maps(), folder / "b", {"", ""});
  const auto ia3 = config_json(folder / "b");
  EXPECT_EQ(ia3["peft_type"], "IA3");
  EXPECT_EQ(ia3["target_modules"], (nlohmann::json{"down_proj", "k_proj", "v_proj"}));
  EXPECT_EQ(ia3["feedforward_modules"], (nlohmann::json{"down_proj"}));
  const SafetensorsFile stored((folder / "b") / "adapter_model.safetensors");
  const std::string layer = "base_model.model.model.layers.0.";
  EXPECT_EQ(stored.tensor(layer + "self_attn.k_proj.ia3_l").shape(), (Shape{8, 1}));
  EXPECT_EQ(stored.tensor(layer + "mlp.down_proj.ia3_l").shape(), (Shape{1, 12}));
}

// Where the published model joins maps, A is stacked, B lies block by block, and the rank grows
// with a factor that undoes it.
TEST(PublishedAdapters, OfJoinedMapsAreOneOfHigherRank) {
  for (const int64_t alternating : {1, 2}) {
    for (const bool rslora : {false, true}) {
      const TemporaryFolder folder;
      TinyLayers model;
      const PublishedMaps maps = joined_maps(alternating);
      PeftConfig c = config("lora", {"layers.**.wq", "layers.**.wk", "layers.0.attention.wv"});
      c.rslora = rslora;
      Tensor with;
      {
        Adapters adapters(model, c, wide());
        disturb(adapters);
        with = model(tiny_input());
        save_adapter(adapters, maps, folder / "a", {"", ""});
      }
      const auto json = config_json(folder / "a");
      EXPECT_EQ(json["rank_pattern"]["h.0.attn.qkv"], 6);
      EXPECT_EQ(json["rank_pattern"]["h.1.attn.qkv"], 4);
      const auto back = load_adapter(model, maps, read_adapter_folder(folder / "a"), wide());
      EXPECT_LE(difference(model(tiny_input()), with), 1e-12) << alternating << rslora;
    }
  }
}

TEST(PublishedAdapters, OfPissaFitTheBaseAsItWas) {
  const TemporaryFolder folder;
  Tensor with;
  {
    TinyLayers model;
    PeftConfig c = config("lora", {"layers.**"});
    c.init = "pissa";
    Adapters adapters(model, c, wide());
    start_from_weights(adapters);
    disturb(adapters);
    with = model(tiny_input());
    save_adapter(adapters, llama_maps(), folder / "a", {"", ""});
  }
  TinyLayers fresh;
  const auto adapters =
      load_adapter(fresh, llama_maps(), read_adapter_folder(folder / "a"), wide());
  EXPECT_LE(difference(fresh(tiny_input()), with), 1e-11);
}

// --- what cannot be read

class Damaged {
 public:
  Damaged() {
    Adapters adapters(model, config("lora", {"wq"}), wide());
    save_adapter(adapters, llama_maps(), path(), {"some/base", "abc"});
  }
  std::filesystem::path path() const { return folder_ / "a"; }
  void set(const std::string& key, const nlohmann::json& value) const {
    nlohmann::json json = config_json(path());
    json[key] = value;
    write_file(path() / "adapter_config.json", json.dump());
  }
  void set_tensors(const TensorDict& tensors) const {
    write_safetensors(path() / "adapter_model.safetensors", tensors);
  }
  TensorDict tensors() const {
    return SafetensorsFile(path() / "adapter_model.safetensors")
        .tensors()
        .mapped([](const std::string&, const Tensor& x) { return copy_of(x); });
  }
  void expect(const std::string& message, const std::string& hash = "") {
    expect_error(
        [&] { load_adapter(model, llama_maps(), read_adapter_folder(path()), wide(), hash); },
        message);
    EXPECT_TRUE(model.layers[0]->attention->wq.adapters.empty());
  }

  TinyLayers model;

 private:
  TemporaryFolder folder_;
};

TEST(PublishedAdapters, ForAnotherBaseAreRefused) {
  Damaged by_hash;
  by_hash.expect(
      "the adapter was made for another base (some/base): its base's hash is abc, this "
      "model's is def",
      "def");
  Damaged by_shape;
  const std::string q = "base_model.model.model.layers.0.self_attn.q_proj.";
  TensorDict tensors = by_shape.tensors();
  tensors.at(q + "lora_A.weight") = random_tensor({2, 9}, 1);
  by_shape.set_tensors(tensors);
  by_shape.expect(
      "model.layers.0.self_attn.q_proj.lora_A is [2, 9], this model needs [2, 8]: the "
      "adapter was made for another base (some/base)");
  Damaged by_name;
  by_name.set_tensors(by_name.tensors().renamed([](const std::string& name) {
    return std::string(name).replace(name.find("q_proj"), 6, "query");
  }));
  by_name.expect(
      "the model has no linear map model.layers.0.self_attn.query; is it an adapter of "
      "another base?");
}

TEST(PublishedAdapters, ThatSayMoreThanIngotComputesAreRefused) {
  Damaged folder;
  folder.set("modules_to_save", {"lm_head"});
  folder.expect("modules_to_save is set: Ingot reads adapters of linear maps alone");
  folder.set("modules_to_save", nullptr);
  folder.set("bias", "all");
  folder.expect("bias is \"all\"");
  folder.set("bias", "none");
  folder.set("peft_type", "VERA");
  folder.expect("peft_type is \"VERA\"; Ingot reads LORA (with DoRA and rsLoRA) and IA3");
  folder.set("peft_type", "LORA");
  folder.set("r", 0);
  folder.expect("r must be at least 1 and lora_alpha above 0: r is 0");
  folder.set("r", "two");
  folder.expect("adapter_config.json");
}

// Nothing is made of a size that only the configuration names.
TEST(PublishedAdapters, WithSizesThatNoFileHasAreRefused) {
  Damaged folder;
  folder.set("r", int64_t{1} << 40);
  folder.expect("r is 1099511627776");
  folder.set("r", 2);
  folder.set("lora_dropout", 1.5);
  folder.expect("lora_dropout must be from 0 to below 1: got 1.5");
  folder.set("lora_dropout", 0);
  folder.set("rank_pattern", {{"q_proj", 1e30}});
  folder.expect("rank_pattern of q_proj is 1e+30");
  folder.set("rank_pattern", nullptr);
  folder.set("peft_type", "INGOT_BOTTLENECK");
  for (const int64_t width : {int64_t{-5}, int64_t{0}, int64_t{1} << 60}) {
    folder.set("width", width);
    folder.expect(concat("width must be from 1 to 16777215: got ", width));
  }
  folder.set("width", 1 << 20);
  folder.expect("has no down.weight");
}

TEST(PublishedAdapters, WithMissingOrUnknownTensorsAreRefused) {
  Damaged folder;
  const TensorDict all = folder.tensors();
  TensorDict fewer;
  for (const auto& [name, tensor] : all) {
    if (!name.ends_with("layers.1.self_attn.q_proj.lora_B.weight")) {
      fewer.add(name, tensor);
    }
  }
  folder.set_tensors(fewer);
  folder.expect("model.layers.1.self_attn.q_proj has no lora_B");
  TensorDict more = all;
  more.add("base_model.model.lm_head.weight", random_tensor({3}, 1));
  folder.set_tensors(more);
  folder.expect("tensor base_model.model.lm_head.weight is no part of an adapter");
  folder.set_tensors({});
  folder.expect("holds no adapter");
  write_file(folder.path() / "adapter_model.safetensors", "short");
  folder.expect("adapter_model.safetensors");
  write_file(folder.path() / "adapter_config.json", "{\"peft_type\": ");
  folder.expect("not valid JSON");
  const TemporaryFolder empty;
  expect_error([&] { read_adapter_folder(empty.path()); }, "holds no adapter_config.json");
}

}  // namespace
}  // namespace ingot::testing
