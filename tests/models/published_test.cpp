// Published folders as they are read and written: what missing keys mean, and that nothing is lost.
#include <gtest/gtest.h>

#include <algorithm>

#include "ingot/base/config_diff.h"
#include "ingot/base/files.h"
#include "ingot/base/json.h"
#include "ingot/base/json_library.h"
#include "ingot/io/safetensors_shards.h"
#include "ingot/models/architecture.h"
#include "ingot/models/bert.h"
#include "ingot/models/pretrained.h"
#include "tests/support/op_case.h"
#include "tests/support/paths.h"

namespace ingot::testing {
namespace {

using Json = nlohmann::json;
using Layers = std::vector<int64_t>;

DecoderConfig read(const std::string& model_type, const Json& keys = Json::object()) {
  return architecture_named(model_type).read(keys, "config.json");
}

// Six layers of eight heads, which the keys given add to.
DecoderConfig small(const std::string& model_type, Json keys = Json::object()) {
  keys.update(Json{{"vocab_size", 100},
                   {"hidden_size", 64},
                   {"num_hidden_layers", 6},
                   {"num_attention_heads", 8}});
  return read(model_type, keys);
}

Layers windowed(const DecoderConfig& c) {
  Layers out;
  for (int64_t layer = 0; layer < c.layers; ++layer) {
    if (is_windowed(c, layer)) {
      out.push_back(layer);
    }
  }
  return out;
}

Layers unrotated(const DecoderConfig& c) {
  Layers out;
  for (int64_t layer = 0; layer < c.layers; ++layer) {
    if (!is_rotated(c, layer)) {
      out.push_back(layer);
    }
  }
  return out;
}

// What the documentation of each family says of a config.json without keys.
struct Default {
  const char* model_type;
  int64_t vocab, width, layers, heads, kv_heads, head_dim, hidden, context;
  double eps, rope_base;
  int64_t window, padding;
  bool tied;
};

constexpr Default defaults[] = {
    {"gpt2", 50257, 768, 12, 12, 12, 64, 3072, 1024, 1e-5, 10000, 0, -1, true},
    {"llama", 32000, 4096, 32, 32, 32, 128, 11008, 2048, 1e-6, 10000, 0, -1, false},
    {"mistral", 32000, 4096, 32, 32, 8, 128, 14336, 131072, 1e-6, 10000, 4096, -1, false},
    {"qwen2", 151936, 4096, 32, 32, 32, 128, 22016, 32768, 1e-6, 10000, 0, -1, false},
    {"qwen3", 151936, 4096, 32, 32, 32, 128, 22016, 32768, 1e-6, 10000, 0, -1, false},
    {"gemma", 256000, 3072, 28, 16, 16, 256, 24576, 8192, 1e-6, 10000, 0, 0, true},
    {"gemma2", 256000, 2304, 26, 8, 4, 256, 9216, 8192, 1e-6, 10000, 4096, 0, true},
    {"gemma3_text", 262208, 2304, 26, 8, 4, 256, 9216, 131072, 1e-6, 1e6, 4096, 0, true},
    {"phi3", 32064, 3072, 32, 32, 32, 96, 8192, 4096, 1e-5, 10000, 0, 32000, false},
    {"gpt_neox", 50432, 6144, 44, 64, 64, 96, 24576, 2048, 1e-5, 10000, 0, -1, false},
    {"olmo2", 50304, 4096, 32, 32, 32, 128, 11008, 2048, 1e-5, 10000, 0, 1, false},
    {"smollm3", 128256, 2048, 36, 16, 4, 128, 11008, 32768, 1e-6, 2e6, 0, 128004, true},
};

TEST(PublishedConfig, MissingKeysMeanTheDefaultsOfTheFamily) {
  for (const Default& d : defaults) {
    SCOPED_TRACE(d.model_type);
    const DecoderConfig c = read(d.model_type);
    EXPECT_EQ(c.vocab, d.vocab);
    EXPECT_EQ(c.width, d.width);
    EXPECT_EQ(c.layers, d.layers);
    EXPECT_EQ(c.heads, d.heads);
    EXPECT_EQ(c.kv_heads, d.kv_heads);
    EXPECT_EQ(c.head_dim, d.head_dim);
    EXPECT_EQ(c.hidden, d.hidden);
    EXPECT_EQ(c.context, d.context);
    EXPECT_EQ(*c.norm_eps, d.eps);
    EXPECT_EQ(c.rope.base, d.rope_base);
    EXPECT_EQ(c.window, d.window);
    EXPECT_EQ(c.padding_id, d.padding);
    EXPECT_EQ(*c.tied, d.tied);
  }
  EXPECT_EQ(read("gemma2").attention_softcap, 50);
  EXPECT_EQ(read("gemma2").logit_softcap, 30);
  EXPECT_EQ(read("gemma2").attention_scale, 1.0 / 16);
  EXPECT_EQ(read("gemma3_text").logit_softcap, 0);
  EXPECT_EQ(read("gemma3_text").rope.local_base, 10000);
  EXPECT_EQ(read("gpt_neox").rope.fraction, 0.25);
  EXPECT_TRUE(read("gpt_neox").parallel);
}

TEST(PublishedConfig, NullIsNotTheSameAsAMissingKey) {
  const Json none = {{"head_dim", nullptr}, {"sliding_window", nullptr}, {"pad_token_id", nullptr}};
  EXPECT_EQ(small("qwen3").head_dim, 128);
  EXPECT_EQ(small("qwen3", none).head_dim, 8);
  EXPECT_EQ(small("gemma", none).head_dim, 8);
  EXPECT_EQ(small("gemma").padding_id, 0);
  EXPECT_EQ(small("gemma", none).padding_id, -1);
  EXPECT_EQ(small("mistral").window, 4096);
  EXPECT_EQ(small("mistral", none).window, 0);
  const Json capless = {{"attn_logit_softcapping", nullptr}, {"final_logit_softcapping", nullptr}};
  EXPECT_EQ(small("gemma2", capless).attention_softcap, 0);
  EXPECT_EQ(small("gemma2", capless).logit_softcap, 0);
  EXPECT_EQ(small("gemma3_text", {{"attn_logit_softcapping", 30.0}}).attention_softcap, 0);
  EXPECT_EQ(small("gemma3_text", {{"final_logit_softcapping", 20.0}}).logit_softcap, 20);
}

TEST(PublishedConfig, WindowsStandInTheLayersThatTheFamilySays) {
  const auto with = [](Json keys, const Json& more) {
    keys.update(more);
    return keys;
  };
  const Json on = {{"sliding_window", 4}, {"use_sliding_window", true}, {"max_window_layers", 4}};
  const Json off = with(on, {{"use_sliding_window", false}});
  for (const char* qwen : {"qwen2", "qwen3"}) {
    EXPECT_EQ(windowed(small(qwen, on)), (Layers{4, 5})) << qwen;
    EXPECT_EQ(windowed(small(qwen, off)), Layers{}) << qwen;
    EXPECT_EQ(windowed(small(qwen, {{"use_sliding_window", true}})), Layers{}) << qwen;  // from 28
  }
  EXPECT_EQ(windowed(small("smollm3", on)), Layers{3});
  EXPECT_EQ(windowed(small("smollm3", off)), Layers{});
  EXPECT_EQ(unrotated(small("smollm3")), Layers{3});
  EXPECT_EQ(unrotated(small("smollm3", {{"no_rope_layer_interval", 2}})), (Layers{1, 3, 5}));
  EXPECT_EQ(unrotated(small("smollm3", {{"no_rope_layers", {0, 1, 1, 1, 1, 0}}})), (Layers{0, 5}));
  EXPECT_EQ(windowed(small("gemma2")), (Layers{0, 2, 4}));
  EXPECT_EQ(windowed(small("gemma3_text")), (Layers{0, 1, 2, 3, 4}));
  EXPECT_EQ(windowed(small("gemma3_text", {{"sliding_window_pattern", 3}})), (Layers{0, 1, 3, 4}));
  const char* full = "full_attention";
  const char* near = "sliding_attention";
  const Json types = {{"layer_types", {full, near, near, full, full, near}}};
  for (const char* model_type : {"gemma2", "gemma3_text"}) {
    EXPECT_EQ(windowed(small(model_type, types)), (Layers{1, 2, 5})) << model_type;
  }
  for (const char* model_type : {"qwen2", "qwen3", "smollm3"}) {
    EXPECT_EQ(windowed(small(model_type, with(on, types))), (Layers{1, 2, 5})) << model_type;
    EXPECT_EQ(windowed(small(model_type, with(off, types))), Layers{}) << model_type;
  }
}

TEST(PublishedConfig, BiasesStandWhereTheFamilySays) {
  const Json on = {{"attention_bias", true}, {"mlp_bias", true}};
  for (const char* model_type :
       {"llama", "gemma", "gemma2", "gemma3_text", "qwen3", "olmo2", "smollm3"}) {
    EXPECT_FALSE(*small(model_type).attention_bias) << model_type;
    EXPECT_TRUE(*small(model_type, on).attention_bias) << model_type;
    EXPECT_TRUE(*small(model_type, on).output_bias) << model_type;
  }
  EXPECT_TRUE(*small("qwen2").attention_bias);
  EXPECT_FALSE(*small("qwen2", on).output_bias);
  EXPECT_FALSE(*small("mistral", on).attention_bias);
  EXPECT_TRUE(*small("llama", on).mlp_bias);
  EXPECT_FALSE(*small("gpt_neox", {{"attention_bias", false}}).output_bias);
  EXPECT_TRUE(*small("gpt_neox", {{"attention_bias", false}}).mlp_bias);
}

TEST(PublishedConfig, ReadsRotationInEveryForm) {
  const Json yarn = {{"factor", 4.0}, {"mscale", 0.7}, {"mscale_all_dim", 0.5}, {"beta_fast", 16}};
  for (const char* kind : {"type", "rope_type"}) {
    Json scaling = yarn;
    scaling[kind] = "yarn";
    const nn::RotaryConfig older = small("llama", {{"rope_scaling", scaling}}).rope;
    scaling["rope_theta"] = 500.0;
    const nn::RotaryConfig newer = small("llama", {{"rope_parameters", scaling}}).rope;
    for (const nn::RotaryConfig& rope : {older, newer}) {
      EXPECT_EQ(rope.scaling, "yarn");
      EXPECT_EQ(rope.factor, 4);
      EXPECT_EQ(rope.mscale_all_dim, 0.5);
      EXPECT_EQ(rope.beta_fast, 16);
    }
    EXPECT_EQ(newer.base, 500);
  }
  const Json by_layer = {
      {"full_attention", {{"rope_type", "linear"}, {"factor", 8.0}, {"rope_theta", 2e6}}},
      {"sliding_attention", {{"rope_type", "default"}, {"rope_theta", 5000.0}}}};
  const nn::RotaryConfig gemma = small("gemma3_text", {{"rope_parameters", by_layer}}).rope;
  EXPECT_EQ(gemma.scaling, "linear");
  EXPECT_EQ(gemma.base, 2e6);
  EXPECT_EQ(gemma.local_base, 5000);
  const Json lists = {{"short_factor", {1.0, 1.5}}, {"long_factor", {2.0, 4.0}}};
  for (const char* kind : {"su", "yarn", "longrope"}) {
    Json scaling = lists;
    scaling["type"] = kind;
    const DecoderConfig c = small(
        "phi3", {{"rope_scaling", scaling}, {"partial_rotary_factor", 0.5}, {"sliding_window", 3}});
    EXPECT_EQ(c.rope.scaling, "longrope") << kind;
    EXPECT_EQ(c.rope.original_context, 4096);
    EXPECT_EQ(c.rope.fraction, 0.5);
    EXPECT_EQ(c.window, 3);
  }
  const DecoderConfig neox = small("gpt_neox", {{"rotary_pct", 0.5}, {"rotary_emb_base", 300}});
  EXPECT_EQ(neox.rope.fraction, 0.5);
  EXPECT_EQ(neox.rope.base, 300);
}

TEST(PublishedConfig, RefusesWhatContradictsItself) {
  const auto refuses = [](const std::string& model_type, const Json& keys,
                          const std::string& text) {
    expect_error([&] { small(model_type, keys); }, text);
  };
  refuses("llama", {{"num_key_value_heads", 3}},
          "model: heads must be a multiple of kv_heads: heads is 8, kv_heads is 3");
  refuses("llama", {{"head_dim", -1}}, "head_dim");
  refuses("gemma2", {{"layer_types", {"full_attention"}}},
          "layer_types does not list every layer: it has 1 entries, num_hidden_layers is 6");
  refuses("qwen3", {{"layer_types", Json::array({"a", "b", "c", "d", "e", "f"})}},
          "layer_types: 'a' of layer 0 is not known");
  refuses("smollm3", {{"no_rope_layers", {1, 0}}}, "no_rope_layers does not list every layer");
  refuses(
      "phi3", {{"rope_scaling", {{"type", "longrope"}, {"short_factor", {1.0}}}}},
      "rope.short_factors needs one factor for every pair that turns: has 1, head_dim 8 turns 4");
  refuses("llama", {{"rope_scaling", 5}}, "config.json: rope_scaling: wrong type");
  refuses(
      "llama",
      {{"rope_scaling", {{"type", "llama3"}, {"low_freq_factor", 4.0}, {"high_freq_factor", 4.0}}}},
      "model: rope.low_frequency must be below rope.high_frequency: low is 4, high is 4");
  refuses("llama", {{"rope_theta", 1.0}, {"rope_scaling", {{"type", "yarn"}}}},
          "model: yarn needs a rope.base above 1: got 1");
  refuses("gemma3_text", {{"use_bidirectional_attention", true}}, "use_bidirectional_attention");
  expect_error(
      [] {
        read("llama", {{"num_attention_heads", 0}});
      },
      "config.json: num_attention_heads: out of range: got 0, allowed is 1 to 1073741824");
  expect_error(
      [] {
        read("qwen2", {{"num_hidden_layers", int64_t{1} << 50}});
      },
      "config.json: num_hidden_layers: out of range");
  expect_error(
      [] {
        read("llama", {{"hidden_size", 100}});
      },
      "model: width must be a multiple of heads: width is 100, heads is 32");
  expect_error([] { architecture_named("qwen33"); },
               "model: model_type 'qwen33' is not known; the nearest is 'qwen3', known are gpt2");
  expect_error([] { architecture_named("bert"); }, "load it with load_bert");
}

// Every folder of the oracles whose architecture is in the table, or bert.
std::vector<std::filesystem::path> folders() {
  std::vector<std::filesystem::path> out;
  const std::filesystem::path root = oracle_folder() / "models";
  for (const std::string& name :
       std::filesystem::is_directory(root) ? list_folder(root) : std::vector<std::string>()) {
    if (std::filesystem::exists(root / name / "config.json")) {
      out.push_back(root / name);
    }
  }
  return out;
}

std::string type_of(const std::filesystem::path& folder) {
  return json_field<std::string>(parse_json_file(folder / "config.json"), "model_type", "config");
}

bool in_table(const std::string& model_type) {
  return std::ranges::any_of(
      architectures(), [&](const Architecture& entry) { return entry.model_type == model_type; });
}

// The tensors of `folder` that have a place in the model, by the names they are written under.
TensorDict with_places(const std::filesystem::path& folder, const NameMap& names,
                       std::string (*spelled)(const std::string&)) {
  TensorDict out;
  for (const auto& [name, tensor] : SafetensorsSet(folder).tensors().renamed(spelled)) {
    const bool skipped = std::ranges::any_of(
        names.ignored, [&](const std::string& pattern) { return matches(pattern, name); });
    const bool tied =
        std::ranges::any_of(names.tied, [&](const NamePair& pair) { return pair.theirs == name; });
    if (!skipped && !tied) {
      out.add(name, tensor);
    }
  }
  return out;
}

void expect_same_tensors(const TensorDict& a, const TensorDict& b) {
  EXPECT_EQ(a.size(), b.size());
  for (const auto& [name, tensor] : a) {
    ASSERT_TRUE(b.contains(name)) << name;
    EXPECT_TRUE(same_bits(tensor, b.at(name))) << name;
  }
}

// Keys of the original that the saved config lacks, or that say something else without need.
void expect_keys_kept(const std::filesystem::path& original, const std::filesystem::path& saved) {
  const Json before = parse_json_file(original / "config.json");
  const Json after = parse_json_file(saved / "config.json");
  for (const auto& [key, value] : before.items()) {
    const bool same = after.contains(key) && after[key] == value;
    const bool filled = value.is_null() && after.contains(key);  // says what null meant
    EXPECT_TRUE(same || filled) << key << ": " << value << " became "
                                << (after.contains(key) ? after[key].dump() : "nothing");
  }
}

void expect_round_trip(const std::filesystem::path& folder) {
  const Architecture& entry = architecture_named(type_of(folder));
  const TemporaryFolder first;
  const TemporaryFolder second;
  const Pretrained loaded = load_pretrained(folder);
  SaveOptions options;
  options.base_config = loaded.config;
  options.shard_bytes = 40000;
  save_pretrained(*loaded.model, first.path(), options);
  const Pretrained again = load_pretrained(first.path());
  options.base_config = again.config;
  save_pretrained(*again.model, second.path(), options);
  const NameMap names = entry.names(loaded.model->config());
  expect_same_tensors(with_places(folder, names, entry.spelled),
                      SafetensorsSet(first.path()).tensors());
  expect_same_tensors(SafetensorsSet(first.path()).tensors(),
                      SafetensorsSet(second.path()).tensors());
  EXPECT_EQ(type_of(first.path()), type_of(folder));
  for (const Difference& d :
       diff_configs(plainest(loaded.model->config()), plainest(again.model->config()))) {
    ADD_FAILURE() << d.path << " was " << d.a << ", is " << d.b;
  }
  EXPECT_EQ(read_file(first / "config.json"), read_file(second / "config.json"));
  expect_keys_kept(folder, first.path());
}

void expect_bert_round_trip(const std::filesystem::path& folder) {
  const TemporaryFolder saved;
  const PretrainedBert loaded = load_bert(folder);
  save_bert(*loaded.model, saved.path(), loaded.config);
  const PretrainedBert again = load_bert(saved.path());
  EXPECT_TRUE(loaded.model->config() == again.model->config());
  expect_same_tensors(with_places(folder, bert_names(loaded.model->config()), bert_spelled),
                      SafetensorsSet(saved.path()).tensors());
  expect_keys_kept(folder, saved.path());
}

TEST(PublishedModels, SavedAgainAreTheSameTensorsUnderTheSameNamesAndConfiguration) {
  int tried = 0;
  for (const std::filesystem::path& folder : folders()) {
    SCOPED_TRACE(folder.filename());
    if (type_of(folder) == "bert") {
      expect_bert_round_trip(folder);
    } else if (in_table(type_of(folder))) {
      expect_round_trip(folder);
    }
    ++tried;
  }
  if (tried == 0) {
    GTEST_SKIP() << "needs models: set INGOT_ORACLES to a folder with models/";
  }
}

TEST(PublishedModels, ListTensorsThatAreMissingUnexpectedOrOfAnotherShape) {
  for (const std::filesystem::path& folder : folders()) {
    if (!in_table(type_of(folder))) {
      continue;
    }
    SCOPED_TRACE(folder.filename());
    const PublishedFolder published = read_published(folder);
    const NamePair first = published.architecture->names(published.config).pairs[1];
    TensorDict broken;
    for (const auto& [name, tensor] : published.tensors) {
      if (name != first.theirs) {
        broken.add(name, tensor);
      }
    }
    broken.add("surplus.weight", published.tensors.at(first.theirs));
    PublishedFolder copy = published;
    copy.tensors = broken;
    const std::string shape = concat(published.tensors.at(first.theirs).shape());
    const auto load = [&] { (void)copy.weights(copy.config); };
    expect_error(load, "missing: " + first.theirs + " " + shape);
    expect_error(load, "unexpected: surplus.weight " + shape);
  }
}

TEST(PublishedModels, KeepPaddingRowsOfTheEmbeddingAndRefuseMissingOnes) {
  DecoderConfig c;
  c.architecture = "llama";
  c.vocab = 48;
  c.width = 16;
  c.layers = 1;
  c.heads = 2;
  const TemporaryFolder folder;
  save_pretrained(Decoder(c), folder.path());
  const auto say_vocab = [&](int64_t size) {
    Json json = parse_json_file(folder / "config.json");
    json["vocab_size"] = size;
    write_file(folder / "config.json", json.dump());
  };
  say_vocab(40);
  EXPECT_EQ(load_pretrained(folder.path()).model->config().vocab, 48);
  say_vocab(50);
  expect_error([&] { load_pretrained(folder.path()); },
               "vocab_size is larger than the embedding: vocab_size is 50, "
               "model.embed_tokens.weight is [48, 16], so tokens 48 to 49 have no row");
}

// A small file that names many modules: nothing is made of them.
TEST(PublishedModels, WithMoreExpertsThanTensorsAreRefusedBeforeAnyIsMade) {
  DecoderConfig c = start_of("mixtral");
  c.vocab = 48;
  c.width = 16;
  c.layers = 1;
  c.heads = 2;
  c.kv_heads = 2;
  c.hidden = 16;
  c.context = 16;
  const TemporaryFolder folder;
  save_pretrained(Decoder(c), folder.path());
  Json json = parse_json_file(folder / "config.json");
  json["num_local_experts"] = 4000;
  write_file(folder / "config.json", json.dump());
  expect_error([&] { load_pretrained(folder.path()); },
               "more experts than tensors: 4000 in all layers, the files hold ");
  json["num_local_experts"] = 65536;
  json["num_hidden_layers"] = 4;
  write_file(folder / "config.json", json.dump());
  expect_error([&] { load_pretrained(folder.path()); },
               "more experts than any model: 262144 in 4 layers");
}

}  // namespace
}  // namespace ingot::testing
