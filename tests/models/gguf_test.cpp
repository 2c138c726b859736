#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <fstream>
#include <set>

#include "ingot/base/files.h"
#include "ingot/base/json.h"
#include "ingot/base/json_library.h"
#include "ingot/io/safetensors_shards.h"
#include "ingot/models/architecture.h"
#include "ingot/models/export.h"
#include "ingot/models/gguf_architecture.h"
#include "ingot/models/gguf_vocabulary_keys.h"
#include "ingot/ops/cross_entropy.h"
#include "ingot/ops/shape.h"
#include "ingot/tensor/copy.h"
#include "ingot/tensor/factories.h"
#include "tests/models/tiny_models.h"
#include "tests/support/message.h"
#include "tests/support/op_case.h"
#include "tests/support/oracle.h"
#include "tests/support/paths.h"

namespace ingot::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Json = nlohmann::json;

Tensor row_of(const Json& ids) {
  const auto values = ids.get<std::vector<int64_t>>();
  return tensor_of(values, {1, static_cast<int64_t>(values.size())});
}

double largest_difference(std::span<const float> got, const Json& expected) {
  double most = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    most = std::max(most, std::abs(double{got[i]} - expected[i].get<double>()));
  }
  return most;
}

void expect_logits(const Decoder& model, const Json& cases) {
  for (const Json& expected : cases) {
    const Tensor logits = model.logits(row_of(expected["ids"]));
    const auto V = static_cast<size_t>(model.config().vocab);
    EXPECT_LE(largest_difference(logits.values<float>().last(V), expected["logits_last"]), 1e-4);
  }
}

double mean_loss(const Decoder& model, const Json& ids) {
  const Tensor row = row_of(ids);
  const int64_t length = row.size(1);
  return cross_entropy(contiguous(slice(model.logits(row), 1, 0, length - 1)),
                       contiguous(slice(row, 1, 1, length)), Reduction::mean)
      .item();
}

std::vector<std::string> oracle_architectures() {
  std::vector<std::string> out;
  for (const std::string& name : list_folder(*data_folder() / "model-tiny-archs")) {
    for (const GgufArchitecture& row : gguf_architectures()) {
      if (row.model_type == name) {
        out.push_back(name);
      }
    }
  }
  return out;
}

TEST(GgufModels, GiveTheirLogits) {
  if (!data_folder()) {
    GTEST_SKIP() << no_data_folder;
  }
  for (const std::string& name : oracle_architectures()) {
    SCOPED_TRACE(name);
    const auto folder = *data_folder() / "model-tiny-archs" / name;
    const Pretrained loaded = load_stored(open_model(folder / "model-f32.gguf"));
    EXPECT_EQ(loaded.model->dtype(), DType::f32);
    expect_logits(*loaded.model, parse_json_file(folder / "oracle.json")["cases"]);
  }
  const auto stories = *data_folder() / "model-stories260k";
  const Json oracle = parse_json_file(stories / "oracle_forward.json");
  for (const char* name : {"stories260k-f32.gguf", "stories260k-f32.v1.gguf", "stories260K.bin"}) {
    SCOPED_TRACE(name);
    expect_logits(*load_stored(open_model(stories / name)).model, oracle["logits"]);
  }
}

// llama.cpp quantizes activations too, which moves the loss by about 0.02 (measured here: 0.003).
TEST(GgufModels, HaveTheLossOfQuantizedFiles) {
  if (!data_folder()) {
    GTEST_SKIP() << no_data_folder;
  }
  const auto stories = *data_folder() / "model-stories260k";
  const Json oracle = parse_json_file(stories / "oracle_forward.json");
  for (const auto& [name, cases] : oracle["quantized_gguf"]["files"].items()) {
    SCOPED_TRACE(name);
    const Pretrained loaded = load_stored(open_model(stories / name), DType::f32);
    for (size_t i = 0; i < cases.size(); ++i) {
      const Json& ids = cases[i].contains("ids") ? cases[i]["ids"] : oracle["logits"][i]["ids"];
      EXPECT_NEAR(mean_loss(*loaded.model, ids), cases[i]["mean_nll"].get<double>(), 0.02);
    }
  }
}

void expect_same_tensors(const SafetensorsSet& a, const SafetensorsSet& b) {
  EXPECT_EQ(a.names(), b.names());
  for (const std::string& name : a.names()) {
    EXPECT_TRUE(same_bits(a.tensor(name), b.tensor(name))) << name;
  }
}

TEST(GgufModels, FromAFolderAndBackAreBitwiseTheSame) {
  if (!data_folder()) {
    GTEST_SKIP() << no_data_folder;
  }
  std::vector<std::filesystem::path> folders = {*data_folder() / "model-stories260k/hf",
                                                *data_folder() / "model-stories260k/hf-bf16"};
  for (const std::string& name : oracle_architectures()) {
    folders.push_back(*data_folder() / "model-tiny-archs" / name);
  }
  for (const auto& folder : folders) {
    SCOPED_TRACE(folder);
    const TemporaryFolder work;
    const StoredModel there = open_model(folder);
    write_gguf(there, work / "x.gguf", GgmlType::f32);
    const StoredModel back = open_model(work / "x.gguf");
    write_folder(back, work / "back", {.dtype = there.dtype});
    expect_same_tensors(SafetensorsSet(folder), SafetensorsSet(work / "back"));
    const Json before = parse_json_file(folder / "config.json");
    const Json after = parse_json_file(work / "back" / "config.json");
    for (const auto& [key, value] : before.items()) {
      EXPECT_EQ(after.value(key, Json()), value) << key;
    }
    for (const char* name : {"tokenizer.json", "tokenizer_config.json"}) {
      if (file_exists(folder / name)) {
        EXPECT_EQ(read_file(work / "back" / name), read_file(folder / name));
      }
    }
  }
}

void expect_same_parameters(const std::filesystem::path& a, const std::filesystem::path& b) {
  const Pretrained before = load_pretrained(a);
  const Pretrained after = load_pretrained(b);
  for (const auto& [name, tensor] : before.model->parameters()) {
    EXPECT_TRUE(same_bits(tensor, after.model->parameters().at(name))) << name;
  }
}

// Of the oracles' Gemma 2 and 3 the scale of scores is none that GGUF can say.
TEST(GgufModels, CarryGemmasOfTheUsualScaleBitForBit) {
  for (const char* family : {"gemma", "gemma2", "gemma3_text"}) {
    SCOPED_TRACE(family);
    DecoderConfig c = start_of(family);
    c.vocab = 256;
    c.width = 32;
    c.layers = 7;
    c.heads = 4;
    c.kv_heads = 2;
    c.head_dim = 8;
    c.hidden = 48;
    c.context = 64;
    c.window = c.window > 0 ? 6 : 0;
    Decoder model(c);
    nn::initialise(model, {"normal", 0.3}, 11);
    // Gains whose sum with 1 is rounded.
    Tensor gain = model.parameters().at("norm.weight");
    for (size_t i = 0; i < gain.values<float>().size(); ++i) {
      gain.mutable_values<float>()[i] =
          std::ldexp(1.2345F, -static_cast<int>(i)) * (i % 2 == 0 ? 1 : -1);
    }
    const TemporaryFolder work;
    save_pretrained(model, work / "hf");
    const StoredModel there = open_model(work / "hf");
    write_gguf(there, work / "x.gguf", GgmlType::f32);
    const StoredModel back = open_model(work / "x.gguf");
    expect_same_logits(there, back);
    write_folder(back, work / "back", {.dtype = DType::f32});
    expect_same_parameters(work / "hf", work / "back");
  }
}

// Every family of the oracles: through GGUF and back, with the configuration that was kept and with
// the file's own keys alone.
TEST(GgufModels, CarryEveryFamily) {
  std::string carried;
  std::set<std::string> types = {"gemma2", "gemma3_text"};  // see above
  std::string refused;
  for (const std::string& name : list_folder(oracle_folder() / "models")) {
    const auto folder = oracle_folder() / "models" / name;
    if (!file_exists(folder / "config.json") || name.starts_with("bert")) {
      continue;
    }
    SCOPED_TRACE(name);
    const TemporaryFolder work;
    const StoredModel there = open_model(folder);
    try {
      write_gguf(there, work / "x.gguf", GgmlType::f32);
    } catch (const Error& error) {
      refused += "\n  " + name + ": " + error.what();
      EXPECT_EQ(error.kind(), ErrorKind::config) << error.what();
      continue;
    }
    carried += " " + name;
    types.insert(there.model_type);
    const Tensor ids = tensor_of(std::vector<int64_t>{1, 5, 9, 0, 7, 7, 12, 3}, {2, 4});
    const Tensor expected = load_stored(there, DType::f32).model->logits(ids);
    const StoredModel kept = open_model(work / "x.gguf");
    EXPECT_EQ(kept.model_type, there.model_type);
    const Tensor got = load_stored(kept, DType::f32).model->logits(ids);
    EXPECT_TRUE(same_bits(got, expected));  // Gemma's gains too, which are written as 1 + w
    GgufMetadata none;
    none.set("ingot.config", "{}");
    rewrite_gguf(GgufFile(work / "x.gguf"), work / "y.gguf", std::nullopt, none);
    if (there.config.rope.scaling != "llama3") {  // see llama3_of: published factors alone
      const StoredModel bare = open_model(work / "y.gguf");
      EXPECT_LT(normwise_error(load_stored(bare, DType::f32).model->logits(ids), expected), 1e-5);
    }
    write_folder(kept, work / "back", {.dtype = there.dtype});
    expect_same_parameters(folder, work / "back");
  }
  std::cout << "carried:" << carried << "\nrefused:" << refused << '\n';
  for (const GgufArchitecture& row : gguf_architectures()) {
    EXPECT_TRUE(types.contains(std::string(row.model_type))) << row.model_type;
  }
  for (const char* name :
       {"llama-gqa", "gpt2-base", "qwen2-base", "qwen3-base", "qwen3-newconfig", "gemma-mqa",
        "phi3-base", "phi3-longrope", "gpt_neox-base", "olmo2-base", "mistral-window",
        "mixtral-base", "qwen3_moe-base", "deepseek_v2-base", "deepseek_v3-base", "smollm3-base"}) {
    EXPECT_THAT(carried, HasSubstr(name));
  }
}

// Files that llama.cpp's own converter laid out: the same metadata, the same tensors.
TEST(GgufModels, AreLaidOutAsTheOracles) {
  if (!data_folder()) {
    GTEST_SKIP() << no_data_folder;
  }
  std::vector<std::pair<std::filesystem::path, std::filesystem::path>> both = {
      {*data_folder() / "model-stories260k/hf",
       *data_folder() / "model-stories260k/stories260k-f32.gguf"}};
  for (const std::string& name : oracle_architectures()) {
    const auto folder = *data_folder() / "model-tiny-archs" / name;
    both.emplace_back(folder, folder / "model-f32.gguf");
  }
  for (const auto& [folder, path] : both) {
    SCOPED_TRACE(folder);
    const TemporaryFolder work;
    write_gguf(open_model(folder), work / "x.gguf", GgmlType::f32);
    const GgufFile ours(work / "x.gguf");
    const GgufFile theirs(path);
    for (const auto& [key, value] : theirs.metadata()) {
      // Any scores that merge in the same order will do; and one file names Qwen 2's way of
      // dividing text where its tokenizer.json divides as GPT-2 does.
      const bool free = key == "general.name" || key == "tokenizer.ggml.scores" ||
                        (key == "tokenizer.ggml.pre" && folder.filename() == "qwen2");
      if (!free) {
        ASSERT_TRUE(ours.metadata().contains(key)) << key;
        EXPECT_TRUE(*ours.metadata().find(key) == value)
            << key << " is " << shown(*ours.metadata().find(key)) << " for " << shown(value);
      }
    }
    ASSERT_EQ(ours.tensors().size(), theirs.tensors().size());
    for (const GgufTensor& tensor : theirs.tensors()) {
      const auto a = ours.bytes(ours.tensor(tensor.name));
      const auto b = theirs.bytes(tensor);
      EXPECT_TRUE(a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size()) == 0)
          << tensor.name;
    }
  }
}

TEST(GgufModels, WriteScoresThatMergeInTheOrderOfTheOriginal) {
  if (!data_folder()) {
    GTEST_SKIP() << no_data_folder;
  }
  const auto stories = *data_folder() / "model-stories260k";
  const GgufFile original(stories / "stories260k-f32.gguf");
  const GgufVocabulary theirs = *gguf_vocabulary_from(original.metadata(), "theirs");
  std::string why;
  const auto ours =
      to_gguf(parse_json_file(stories / "hf/tokenizer.json"),
              parse_json_file(stories / "hf/tokenizer_config.json"), Json(), 512, why);
  ASSERT_TRUE(ours) << why;
  EXPECT_EQ(ours->tokens, theirs.tokens);
  EXPECT_EQ(ours->types, theirs.types);
  for (size_t a = 0; a < 512; ++a) {
    for (size_t b = 0; b < 512; ++b) {  // where both say something of two pieces, they agree
      if (ours->scores[a] < 0 && ours->scores[b] < 0 && theirs.scores[a] > theirs.scores[b]) {
        EXPECT_GT(ours->scores[a], ours->scores[b]) << theirs.tokens[a] << ' ' << theirs.tokens[b];
      }
    }
  }
}

TEST(GgufModels, CarryEveryShapeOfAFamily) {
  DecoderConfig llama = tiny("llama");
  llama.kv_heads = 2;
  llama.head_dim = 24;
  llama.tied = true;
  llama.attention_bias = llama.output_bias = llama.mlp_bias = true;
  DecoderConfig llama3 = tiny("llama");
  llama3.rope.scaling = "llama3";
  llama3.rope.factor = 8;
  llama3.rope.original_context = 8192;
  DecoderConfig linear = tiny("llama");
  linear.rope.scaling = "linear";
  linear.rope.factor = 2;
  for (const DecoderConfig& config : {llama, llama3, linear, tiny("gpt2")}) {
    for (const DType dtype : {DType::f32, DType::bf16}) {
      const TemporaryFolder work;
      const StoredModel there = saved(config, work / "hf", dtype);
      const GgmlType type = *ggml_type_named(name(dtype));
      write_gguf(there, work / "x.gguf", type);
      expect_same_logits(there, open_model(work / "x.gguf"));
      // Without the configuration that was kept, the file's own keys say it all.
      GgufFile file(work / "x.gguf");
      EXPECT_EQ(file.tensor("token_embd.weight").type, type);
      EXPECT_EQ(file.tensor("output_norm.weight").type, GgmlType::f32);
      GgufMetadata none;
      none.set("ingot.config", "{}");
      rewrite_gguf(file, work / "y.gguf", type, none);
      expect_same_logits(there, open_model(work / "y.gguf"));
    }
  }
}

TEST(GgufModels, RefuseWhatTheFormatCannotSay) {
  const TemporaryFolder work;
  DecoderConfig c = tiny("llama");
  c.rope.scaling = "dynamic";
  c.rope.factor = 2;
  const StoredModel dynamic = saved(c, work / "a");
  EXPECT_THAT(
      message_of(ErrorKind::config, [&] { write_gguf(dynamic, work / "x.gguf", GgmlType::f32); }),
      HasSubstr("a GGUF file cannot say all of this model: rope.scaling is"));
  c = tiny("llama");
  c.activation = "geglu_tanh";
  const StoredModel other = saved(c, work / "b");
  EXPECT_THAT(
      message_of(ErrorKind::config, [&] { write_gguf(other, work / "x.gguf", GgmlType::f32); }),
      HasSubstr("activation is"));
  c = tiny("llama");
  c.positions = "alibi";
  const StoredModel own = saved(c, work / "c");
  EXPECT_THAT(
      message_of(ErrorKind::config, [&] { write_gguf(own, work / "x.gguf", GgmlType::f32); }),
      HasSubstr("a model of model_type 'ingot' cannot be written"));
  EXPECT_FALSE(file_exists(work / "x.gguf"));
}

TEST(GgufModels, QuantizeWhatCanBeAndSayWhatIsOtherwise) {
  const TemporaryFolder work;
  DecoderConfig c = tiny("llama");
  c.width = 256;
  c.head_dim = 64;
  const StoredModel there = saved(c, work / "hf");
  const ExportResult result = write_gguf(there, work / "x.gguf", GgmlType::q4_k);
  const GgufFile file(work / "x.gguf");
  EXPECT_EQ(file.tensor("blk.0.attn_q.weight").type, GgmlType::q4_k);
  EXPECT_EQ(file.tensor("blk.0.ffn_down.weight").type, GgmlType::q5_0);  // rows of 96
  EXPECT_EQ(file.tensor("output.weight").type, GgmlType::q6_k);
  EXPECT_EQ(file.tensor("token_embd.weight").type, GgmlType::q4_k);
  EXPECT_EQ(file.tensor("blk.0.attn_norm.weight").type, GgmlType::f32);
  EXPECT_THAT(result.otherwise, ElementsAre("blk.0.ffn_down.weight [256, 96] is Q5_0",
                                            "blk.1.ffn_down.weight [256, 96] is Q5_0",
                                            "output.weight [256, 256] is Q6_K"));
  // From another GGUF file: the same bytes.
  write_gguf(there, work / "f32.gguf", GgmlType::f32);
  rewrite_gguf(GgufFile(work / "f32.gguf"), work / "again.gguf", GgmlType::q4_k);
  const GgufFile again(work / "again.gguf");
  for (const GgufTensor& tensor : file.tensors()) {
    const auto a = file.bytes(tensor);
    const auto b = again.bytes(again.tensor(tensor.name));
    EXPECT_TRUE(std::equal(a.begin(), a.end(), b.begin(), b.end())) << tensor.name;
  }
}

TEST(GgufModels, SayWhatTheyLack) {
  const TemporaryFolder work;
  const StoredModel bare = saved(tiny("gpt2"), work / "a");
  EXPECT_THAT(write_gguf(bare, work / "x.gguf", GgmlType::f32).lacks,
              ElementsAre("no tokenizer: there is no tokenizer.json; programs can run the file on "
                          "token ids alone"));
  EXPECT_EQ(GgufFile(work / "x.gguf").metadata().text("tokenizer.ggml.model", "x"), "no_vocab");
  const StoredModel bytes =
      saved(tiny("gpt2"), work / "b", DType::f32, R"({"ingot": {"tokens": "bytes"}})");
  EXPECT_THAT(write_gguf(bytes, work / "x.gguf", GgmlType::f32).lacks,
              ElementsAre(HasSubstr("no end token and no chat template: the model reads bytes")));
  const auto tokens = gguf_vocabulary_from(GgufFile(work / "x.gguf").metadata(), "x");
  ASSERT_TRUE(tokens);
  EXPECT_EQ(tokens->tokens[0], "Ā");
  EXPECT_EQ(tokens->tokens[32], "Ġ");
  EXPECT_EQ(tokens->tokens[255], "ÿ");
  write_file(work / "b/tokenizer.json", R"({"model": {"type": "Unigram"}})");
  EXPECT_THAT(write_gguf(open_model(work / "b"), work / "x.gguf", GgmlType::f32).lacks,
              ElementsAre(HasSubstr("its model is 'Unigram', carried over is BPE")));
}

TEST(GgufModels, ListEveryTensorThatDoesNotFit) {
  const TemporaryFolder work;
  write_gguf(saved(tiny("llama"), work / "a"), work / "x.gguf", GgmlType::f32);
  const GgufFile file(work / "x.gguf");
  GgufHeader header = file.header();
  header.metadata.set("ingot.config", "{}");
  header.metadata.set_u32("llama.feed_forward_length", 80);
  header.tensors.back().name = "stranger";
  GgufWriter writer(work / "y.gguf", header);
  for (const GgufTensor& tensor : file.tensors()) {
    writer.write(file.bytes(tensor));
  }
  writer.commit();
  const std::string message = message_of(ErrorKind::format, [&] { open_model(work / "y.gguf"); });
  EXPECT_THAT(message, HasSubstr("y.gguf: the tensors do not fit the metadata:"));
  EXPECT_THAT(message, HasSubstr("\n  shape: blk.0.ffn_gate.weight is [96, 64], the metadata says "
                                 "[80, 64]"));
  EXPECT_THAT(message, HasSubstr("\n  unexpected: stranger [256, 64]"));
}

// Checkpoints of C programs, spelled out here from their documentation.
struct Binary {
  std::string bytes;
  const TensorDict& ours;

  template <class T>
  void number(T value) {
    bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  void tensor(const std::string& name, DType dtype = DType::f32) {
    const Tensor values = converted(ours.at(name), dtype);
    bytes.append(static_cast<const char*>(values.view().data), static_cast<size_t>(values.bytes()));
  }
  // [H, 2, C/2, D] → [H, C/2, 2, D]
  void interleaved(const std::string& name, int64_t heads) {
    const Tensor& x = ours.at(name);
    const int64_t C = x.size(0) / heads;
    const Tensor parts = contiguous(transpose(reshape(x, {heads, 2, C / 2, x.size(1)}), 1, 2));
    bytes.append(static_cast<const char*>(parts.view().data), static_cast<size_t>(parts.bytes()));
  }
  void layers(const std::string& name, int64_t count, DType dtype = DType::f32) {
    for (int64_t i = 0; i < count; ++i) {
      tensor(concat("layers.", i, ".", name), dtype);
    }
  }
};

TEST(LlamaCBinaries, OfVersionOneGiveTheSameLogits) {
  const TemporaryFolder work;
  DecoderConfig c = complete(tiny("llama"));
  const StoredModel there = saved(c, work / "hf");
  const Pretrained loaded = load_stored(there);
  const TensorDict ours = loaded.model->parameters();
  Binary out{"", ours};
  out.number(0x616b3432U);
  for (const int64_t value :
       {int64_t{1}, c.width, c.hidden, c.layers, c.heads, c.kv_heads, c.vocab, c.context}) {
    out.number(static_cast<int32_t>(value));
  }
  out.bytes.resize(256, '\0');  // not shared
  out.layers("attention_norm.weight", 2);
  out.layers("mlp_norm.weight", 2);
  out.tensor("norm.weight");
  out.tensor("embedding.weight");
  for (const char* name : {"wq", "wk"}) {
    for (int64_t i = 0; i < 2; ++i) {
      out.interleaved(concat("layers.", i, ".attention.", name, ".weight"), 4);
    }
  }
  for (const char* name : {"attention.wv", "attention.wo", "mlp.gate", "mlp.down", "mlp.up"}) {
    out.layers(concat(name, ".weight"), 2);
  }
  out.tensor("head.weight");
  write_file(work / "x.bin", out.bytes);
  expect_same_logits(there, open_model(work / "x.bin"));
  for (const size_t length :
       {size_t{0}, size_t{3}, size_t{20}, size_t{255}, size_t{300}, out.bytes.size() - 1}) {
    write_file(work / "y.bin", out.bytes.substr(0, length));
    EXPECT_THROW(open_model(work / "y.bin"), Error) << length;
  }
  write_file(work / "y.bin", out.bytes + "x");
  EXPECT_THAT(message_of(ErrorKind::format, [&] { open_model(work / "y.bin"); }),
              HasSubstr(concat("the header describes ", out.bytes.size(), " bytes, the file has ",
                               out.bytes.size() + 1)));
  const std::string huge(28, '\x7f');
  write_file(work / "y.bin", huge);
  EXPECT_THAT(message_of(ErrorKind::format, [&] { open_model(work / "y.bin"); }),
              HasSubstr("not a checkpoint that Ingot reads: dim would be 2139062143"));
}

TEST(LlmCBinaries, GiveTheSameLogits) {
  for (const DType dtype : {DType::f32, DType::bf16}) {
    const TemporaryFolder work;
    DecoderConfig c = tiny("gpt2");
    c.hidden = 4 * c.width;
    c = complete(c);
    const StoredModel there = saved(c, work / "hf", dtype);
    const Pretrained loaded = load_stored(there);
    const TensorDict ours = loaded.model->parameters();
    Binary out{"", ours};
    const int64_t padded = 384;
    for (const int64_t value : {int64_t{20240326}, int64_t{dtype == DType::f32 ? 3 : 5}, c.context,
                                c.vocab, c.layers, c.heads, c.width, padded}) {
      out.number(static_cast<int32_t>(value));
    }
    out.bytes.resize(1024, '\0');
    out.tensor("embedding.weight", dtype);
    out.bytes.append(static_cast<size_t>((padded - c.vocab) * c.width * size_of(dtype)), '\0');
    out.tensor("positions.weight", dtype);
    out.layers("attention_norm.weight", 2, dtype);
    out.layers("attention_norm.bias", 2, dtype);
    for (const char* part : {".weight", ".bias"}) {
      for (int64_t i = 0; i < 2; ++i) {
        for (const char* name : {"wq", "wk", "wv"}) {
          out.tensor(concat("layers.", i, ".attention.", name, part), dtype);
        }
      }
    }
    for (const char* name :
         {"attention.wo.weight", "attention.wo.bias", "mlp_norm.weight", "mlp_norm.bias",
          "mlp.up.weight", "mlp.up.bias", "mlp.down.weight", "mlp.down.bias"}) {
      out.layers(name, 2, dtype);
    }
    out.tensor("norm.weight", dtype);
    out.tensor("norm.bias", dtype);
    write_file(work / "x.bin", out.bytes);
    const StoredModel read = open_model(work / "x.bin");
    EXPECT_EQ(read.dtype, dtype);
    expect_same_logits(there, read);
    write_file(work / "y.bin", out.bytes.substr(0, out.bytes.size() - 2));
    EXPECT_THAT(message_of(ErrorKind::format, [&] { open_model(work / "y.bin"); }),
                HasSubstr("truncated: norm.bias"));
  }
}

TEST(StoredModels, SayWhatTheyCannotRead) {
  const TemporaryFolder work;
  write_file(work / "x.txt", "some text, long enough");
  EXPECT_THAT(
      message_of(ErrorKind::format, [&] { open_model(work / "x.txt"); }),
      HasSubstr("no model that Ingot reads: expected a folder with config.json, a GGUF file"));
  GgufHeader header;
  header.metadata.set("general.architecture", "mamba");
  GgufWriter writer(work / "x.gguf", header);
  writer.commit();
  EXPECT_THAT(
      message_of(ErrorKind::config, [&] { open_model(work / "x.gguf"); }),
      HasSubstr("general.architecture 'mamba' is not known; known are gpt2, llama, smollm3"));
}

}  // namespace
}  // namespace ingot::testing
