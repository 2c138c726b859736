// Model files that are damaged, contradict themselves or are none: the program must end with one
// line that says which and what, and leave nothing.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <limits>

#include "ingot/base/json.h"
#include "ingot/io/gguf.h"
#include "ingot/models/pretrained.h"
#include "ingot/nn/initialise.h"
#include "tests/cli/program.h"

namespace ingot::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::Not;
using Json = nlohmann::json;

constexpr int format_code = 3, config_code = 2, numeric_code = 4;

std::string bytes_of(uint64_t value) {
  std::string out(sizeof value, '\0');
  std::memcpy(out.data(), &value, sizeof value);
  return out;
}

class BadModels : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const std::string reason = no_program(); !reason.empty()) {
      GTEST_SKIP() << reason;
    }
    DecoderConfig c;
    c.architecture = "llama";
    c.vocab = 32;
    c.width = 32;
    c.layers = 1;
    c.heads = 4;
    c.kv_heads = 2;
    c.hidden = 32;
    c.context = 16;
    Decoder model(c);
    nn::initialise(model, {"normal", 0.08}, 5);
    SaveOptions shards;
    shards.shard_bytes = 10000;
    save_pretrained(model, work / "good");
    save_pretrained(model, work / "good-shards", shards);
  }

  // A fresh copy of a model to damage.
  fs::path fresh(const std::string& of = "good") const {
    fs::remove_all(work / "bad");
    fs::copy(work / of, work / "bad", fs::copy_options::recursive);
    return work / "bad";
  }

  // Both a command that loads the model and one that reads it piece by piece refuse it.
  void expect_refused(int code, const Words& parts, const std::string& name = "bad") const {
    for (const Words& words : {Words{"generate", name, "--ids", "--prompt", "1", "--tokens", "1"},
                               Words{"convert", name, "out"}}) {
      const Outcome outcome = work.run(words);
      EXPECT_EQ(outcome.code, code) << words.front() << ": " << outcome.err;
      EXPECT_EQ(lines_of(outcome.err).size(), 1U) << outcome.err;
      EXPECT_THAT(outcome.err, HasSubstr(name));
      EXPECT_THAT(outcome.err, Not(HasSubstr("unexpected: ")));
      for (const std::string& part : parts) {
        EXPECT_THAT(outcome.err, HasSubstr(part)) << words.front();
      }
      EXPECT_FALSE(fs::exists(work / "out"));
    }
  }

  void expect_weights_refused(const std::string& bytes, const std::string& text) const {
    put(fresh() / "model.safetensors", bytes);
    expect_refused(format_code, {"bad/model.safetensors", text});
  }

  void expect_config_refused(const Json& keys, int code, const Words& parts) const {
    SCOPED_TRACE(keys.dump());
    Json config = parse_json_file(fresh() / "config.json");
    config.merge_patch(keys);
    put(work / "bad/config.json", config.dump());
    expect_refused(code, parts);
  }

  void expect_index_refused(const std::function<void(Json& index)>& change, int code,
                            const Words& parts) const {
    const fs::path index = fresh("good-shards") / "model.safetensors.index.json";
    Json json = parse_json_file(index);
    change(json);
    put(index, json.dump());
    expect_refused(code, parts);
  }

  Workplace work;
};

TEST_F(BadModels, WeightsThatAreCutOffOrOfAnotherKind) {
  const std::string good = content(work / "good/model.safetensors");
  expect_weights_refused("", "it has 0 bytes");
  expect_weights_refused(good.substr(0, 7), "it has 7 bytes");
  expect_weights_refused(good.substr(0, 100), "truncated: the header has");
  expect_weights_refused(good.substr(0, good.size() - 5), "the file is truncated or damaged");
  expect_weights_refused(bytes_of(uint64_t{1} << 63) + good.substr(8),
                         "the header would have 9223372036854775808 bytes");
  expect_weights_refused("PK\3\4" + good.substr(4), "the header");
}

TEST_F(BadModels, WeightsWhoseHeaderIsWrong) {
  const std::string good = content(work / "good/model.safetensors");
  uint64_t length = 0;
  std::memcpy(&length, good.data(), sizeof length);
  const Json header = Json::parse(good.substr(8, length));
  const std::string data = good.substr(8 + length);
  const std::string name = "model.embed_tokens.weight";
  const auto refused = [&](const std::string& text, const std::string& says) {
    expect_weights_refused(bytes_of(text.size()) + text + data, says);
  };
  const auto changed = [&](const char* key, const Json& value, const std::string& says) {
    Json copy = header;
    copy[name][key] = value;
    refused(copy.dump(), says);
  };
  const int64_t begin = header[name]["data_offsets"][0];
  const int64_t end = header[name]["data_offsets"][1];
  changed("data_offsets", {begin + 4, end + 4}, "gap of 4 bytes before it");
  changed("data_offsets", {begin - 4, end - 4}, begin == 0 ? "no interval" : "overlap");
  changed("data_offsets", {int64_t{1} << 40, (int64_t{1} << 40) + end - begin}, "outside the file");
  changed("shape", {int64_t{1} << 62, 8}, "multiply to more than 63 bits");
  changed("dtype", "F99", "unknown dtype F99");
  std::string twice = header.dump();
  twice.back() = ',';
  refused(twice + Json(name).dump() + ": " + header[name].dump() + "}",
          name + ": this name is in the header twice");
}

TEST_F(BadModels, IndicesThatLeadNowhereOrInCircles) {
  const std::string tensor = "model.norm.weight";
  const auto to = [&](const Json& file) {
    return [&, file](Json& index) { index["weight_map"][tensor] = file; };
  };
  expect_index_refused(to("model.safetensors.index.json"), format_code,
                       {"index.json: not a safetensors file"});
  expect_index_refused(to("absent.safetensors"), format_code, {"absent.safetensors", "No such"});
  expect_index_refused(to("../good/model.safetensors"), format_code,
                       {tensor + ": not the name of a file beside the index"});
  expect_index_refused(to(3), format_code, {"not the name of a file beside the index: 3"});
  expect_index_refused([&](Json& index) { index["weight_map"].erase(tensor); }, format_code,
                       {"missing: " + tensor + " [32]"});
  expect_index_refused([](Json& index) { index.erase("weight_map"); }, format_code,
                       {"weight_map: missing key"});
  const Json index = parse_json_file(fresh("good-shards") / "model.safetensors.index.json");
  const std::string name = index["weight_map"][tensor];
  const fs::path shard = work / "bad" / name;
  ASSERT_TRUE(fs::remove(shard));
  expect_refused(format_code, {name, "No such file"});
  fs::create_symlink(shard.filename(), shard);
  expect_refused(format_code, {name, "symbolic links"});
  fs::remove(fresh("good-shards") / "model.safetensors.index.json");
  expect_refused(format_code, {"neither model.safetensors nor model.safetensors.index.json"});
}

TEST_F(BadModels, ConfigurationsThatContradictThemselvesOrTheWeights) {
  expect_config_refused({{"head_dim", 6}}, format_code,
                        {"q_proj.weight is [32, 32], the configuration says [24, 32]"});
  expect_config_refused({{"num_key_value_heads", 3}}, config_code,
                        {"heads must be a multiple of kv_heads: heads is 4, kv_heads is 3"});
  expect_config_refused({{"num_attention_heads", 5}, {"head_dim", nullptr}}, config_code,
                        {"heads is 5"});
  expect_config_refused({{"vocab_size", 40}}, config_code,
                        {"vocab_size is 40, model.embed_tokens.weight is [32, 32]"});
  expect_config_refused({{"num_hidden_layers", 2}}, format_code,
                        {"missing: model.layers.1.self_attn.q_proj.weight [32, 32]"});
  expect_config_refused({{"num_hidden_layers", int64_t{1} << 50}}, config_code,
                        {"num_hidden_layers: out of range"});
  expect_config_refused({{"model_type", nullptr}}, format_code, {"model_type: missing key"});
  expect_config_refused({{"model_type", "lama"}}, config_code,
                        {"'lama' is not known; the nearest is 'llama', known are gpt2"});
  expect_config_refused({{"hidden_size", "32"}}, format_code, {"hidden_size: wrong type"});
  expect_config_refused({{"rms_norm_eps", -1}}, config_code, {"norm_eps: out of range"});
  put(fresh() / "config.json", "{\"model_type\"");
  expect_refused(format_code, {"config.json:1:", "not valid JSON"});
}

// The head is in the file, and the configuration says that it is the embedding.
TEST_F(BadModels, AHeadThatIsNotWhatItIsTiedTo) {
  expect_config_refused({{"tie_word_embeddings", true}}, format_code,
                        {"lm_head.weight [32, 32] is not the embedding", "tie_word_embeddings"});
}

TEST_F(BadModels, RowsOfPaddingAreKeptAndExplained) {
  Json config = parse_json_file(fresh() / "config.json");
  config["vocab_size"] = 30;
  put(work / "bad/config.json", config.dump());
  const Outcome outcome = work.run({"convert", "bad", "kept"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("has 32 rows for a vocabulary of 30"));
  EXPECT_EQ(model_bytes(work.path()), "");
  EXPECT_EQ(content(work / "kept/model.safetensors"), content(work / "good/model.safetensors"));
}

class BadGgufModels : public BadModels {
 protected:
  void SetUp() override {
    BadModels::SetUp();
    if (!IsSkipped()) {
      ASSERT_EQ(work.run({"quantize", "good", "good.gguf", "--type", "Q8_0"}).code, 0);
      good_ = content(work / "good.gguf");
      header_ = GgufFile(work / "good.gguf").header();
    }
  }

  void expect_bytes_refused(const std::string& bytes, int code, const Words& parts) const {
    put(work / "bad.gguf", bytes);
    expect_refused(code, parts, "bad.gguf");
  }
  // The file with other metadata or tensors in front of the same data.
  void expect_header_refused(const std::function<void(GgufHeader&)>& change, int code,
                             const Words& parts) const {
    GgufHeader header = header_;
    const size_t before = gguf_header_text(header).size();
    change(header);
    expect_bytes_refused(gguf_header_text(header) + good_.substr(before), code, parts);
  }
  // Overwrites what stands behind the only place of `key` as the file spells it.
  std::string with(const std::string& key, size_t behind, const std::string& value) const {
    std::string out = good_;
    const size_t at = out.find(key);
    EXPECT_NE(at, std::string::npos) << key;
    return out.replace(at + key.size() + behind, value.size(), value);
  }

  std::string good_;
  GgufHeader header_;
};

TEST_F(BadGgufModels, ThatAreCutOffOrOfAnotherKind) {
  expect_bytes_refused("", format_code, {"no model that Ingot reads"});
  expect_bytes_refused("GGUF", format_code, {"version: ends before its end"});
  expect_bytes_refused("GGUX" + good_.substr(4), format_code, {"no model that Ingot reads"});
  expect_bytes_refused(good_.substr(0, 300), format_code, {"truncated"});
  expect_bytes_refused(good_.substr(0, good_.size() - 9), format_code, {"it is truncated"});
  expect_bytes_refused(good_.substr(0, 8) + bytes_of(uint64_t{1} << 63) + good_.substr(16),
                       format_code, {"there cannot be 9223372036854775808"});
}

TEST_F(BadGgufModels, WhoseTensorsCannotBe) {
  // Behind a tensor's name: the number of sides (4 bytes), the sides, the type (4), the place.
  const std::string matrix = "blk.0.ffn_up.weight";
  expect_bytes_refused(with(matrix, 4 + 16 + 4, bytes_of(0)), format_code, {"overlaps"});
  expect_bytes_refused(with(matrix, 4 + 16 + 4, bytes_of(4)), format_code, {"not aligned"});
  expect_bytes_refused(with(matrix, 4 + 16 + 4, bytes_of(uint64_t{1} << 40)), format_code,
                       {matrix + ": begins beyond the end"});
  expect_bytes_refused(with(matrix, 4, bytes_of(uint64_t{1} << 62)), format_code,
                       {matrix + ": its dimensions multiply to more than 63 bits"});
  expect_bytes_refused(with(matrix, 4 + 16, std::string("\x63\0\0\0", 4)), format_code,
                       {"no type that Ingot knows has the number 99"});
  std::string twice = good_;
  twice[twice.find("blk.0.attn_k.weight") + 11] = 'q';
  expect_bytes_refused(twice, format_code, {"this name is in the file twice"});
}

TEST_F(BadGgufModels, WhoseMetadataContradictsItself) {
  const auto set = [](const char* key, int64_t value) {
    return [=](GgufHeader& header) { header.metadata.set_u32(key, value); };
  };
  expect_header_refused(set("llama.attention.head_count_kv", 3), config_code,
                        {"heads must be a multiple of kv_heads: heads is 4, kv_heads is 3"});
  expect_header_refused(set("llama.attention.head_count", 0), format_code, {"must be above 0"});
  expect_header_refused(set("llama.block_count", 2), format_code, {"missing: blk.1.attn_norm"});
  expect_header_refused(set("llama.block_count", int64_t{1} << 31), format_code,
                        {"not a size that a model has"});
  expect_header_refused(set("llama.vocab_size", 40), format_code,
                        {"llama.vocab_size differs from the rows of token_embd.weight: 40 and 32"});
  expect_header_refused(
      [](GgufHeader& header) { header.metadata.set("general.architecture", "lamma"); }, config_code,
      {"'lamma' is not known; known are gpt2"});
  const auto number = [](double value) {
    return [=](GgufHeader& header) { header.metadata.set_f32("llama.rope.freq_base", value); };
  };
  expect_header_refused(number(std::numeric_limits<double>::infinity()), config_code,
                        {"rope.base", "infinite"});
  expect_header_refused(number(std::numeric_limits<double>::quiet_NaN()), config_code,
                        {"rope.base: not a number"});
}

TEST_F(BadGgufModels, WhoseScaleIsNoNumber) {
  const GgufFile file(work / "good.gguf");
  const GgufTensor& tensor = file.tensor("blk.0.ffn_up.weight");
  ASSERT_EQ(tensor.type, GgmlType::q8_0);
  GgufHeader header = header_;
  const size_t at = gguf_header_text(header).size() + static_cast<size_t>(tensor.begin);
  std::string bytes = good_;
  bytes.replace(at, 2, std::string("\x00\x7e", 2));  // NaN in f16
  expect_bytes_refused(bytes, numeric_code, {"the scale of its block is NaN or infinite"});
}

}  // namespace
}  // namespace ingot::testing
