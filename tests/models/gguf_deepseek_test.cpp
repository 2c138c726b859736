#include <gmock/gmock.h>

#include "ingot/models/architecture.h"
#include "tests/models/tiny_models.h"
#include "tests/support/message.h"
#include "tests/support/oracle.h"

namespace ingot::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

DecoderConfig tiny_deepseek(const char* family) {
  DecoderConfig c = start_of(family);
  c.vocab = 256;
  c.width = 32;
  c.layers = 3;
  c.heads = 4;
  c.hidden = 48;
  c.context = 32;
  c.norm_eps = 1e-6;
  c.rope.layout = "interleaved";
  c.latent = {.kv_rank = 12, .q_rank = 0, .nope_dim = 6, .rope_dim = 8, .value_dim = 10};
  c.moe.experts = 6;
  c.moe.top_k = 2;
  c.moe.hidden = 20;
  c.moe.shared = 1;
  c.moe.dense_first = 1;
  c.moe.balance = 0;
  return c;
}

DecoderConfig grouped_v3() {
  DecoderConfig c = tiny_deepseek("deepseek_v3");
  c.latent.q_rank = 14;
  c.moe.groups = 3;
  c.moe.groups_kept = 2;
  c.moe.scale = 2.5;
  return c;
}

void expect_carried(const DecoderConfig& config, const std::string& family) {
  const TemporaryFolder work;
  const StoredModel there = saved(config, work / "hf");
  ASSERT_EQ(there.model_type, family);
  write_gguf(there, work / "x.gguf", GgmlType::f32);
  const StoredModel kept = open_model(work / "x.gguf");
  EXPECT_EQ(kept.model_type, family);
  expect_same_logits(there, kept);
  const StoredModel bare = by_its_own_keys(work / "x.gguf");
  EXPECT_EQ(bare.model_type, family);
  EXPECT_LT(normwise_error(logits_of(bare), logits_of(there)), 1e-6);
}

TEST(GgufDeepseek, CarriesBothFamilies) {
  expect_carried(tiny_deepseek("deepseek_v2"), "deepseek_v2");
  DecoderConfig v2 = tiny_deepseek("deepseek_v2");
  v2.latent.q_rank = 14;
  v2.moe.shared = 2;
  v2.rope.scaling = "yarn";
  v2.rope.factor = 4;
  v2.rope.original_context = 8;
  v2.rope.mscale = v2.rope.mscale_all_dim = 0.707;
  expect_carried(v2, "deepseek_v2");
  expect_carried(grouped_v3(), "deepseek_v3");
}

// The layout spelled out: head h of kv_b has its 6 rows of keys, then its 10 of values.
TEST(GgufDeepseek, DividesTheMapsUpHeadByHeadAndTransposesTheKeys) {
  const TemporaryFolder work;
  const StoredModel there = saved(tiny_deepseek("deepseek_v2"), work / "hf");
  write_gguf(there, work / "x.gguf", GgmlType::f32);
  const GgufFile file(work / "x.gguf");
  EXPECT_EQ(file.tensor("blk.1.attn_k_b.weight").shape, Shape({4, 12, 6}));
  EXPECT_EQ(file.tensor("blk.1.attn_v_b.weight").shape, Shape({4, 10, 12}));
  std::vector<float> joined(4 * 16 * 12);
  there.read("layers.1.attention.wkv_b.weight", 0, 64, joined);
  const auto values = [&](const char* name) {
    const auto bytes = file.bytes(file.tensor(name));
    return std::span(reinterpret_cast<const float*>(bytes.data()), bytes.size() / sizeof(float));
  };
  const auto keys = values("blk.1.attn_k_b.weight");
  const auto rest = values("blk.1.attn_v_b.weight");
  for (size_t h = 0; h < 4; ++h) {
    for (size_t j = 0; j < 12; ++j) {
      for (size_t i = 0; i < 6; ++i) {
        ASSERT_EQ(keys[(h * 12 + j) * 6 + i], joined[(h * 16 + i) * 12 + j]);
      }
      for (size_t i = 0; i < 10; ++i) {
        ASSERT_EQ(rest[(h * 10 + i) * 12 + j], joined[(h * 16 + 6 + i) * 12 + j]);
      }
    }
  }
  EXPECT_EQ(file.metadata().integer("deepseek2.attention.key_length", "x"), 12 + 8);
  EXPECT_EQ(file.metadata().integer("deepseek2.attention.key_length_mla", "x"), 6 + 8);
  EXPECT_EQ(file.metadata().integer("deepseek2.attention.head_count_kv", "x"), 1);
  EXPECT_EQ(file.metadata().integer("deepseek2.leading_dense_block_count", "x"), 1);
  EXPECT_EQ(file.metadata().integer("deepseek2.expert_gating_func", "x"), 1);
}

// Rows may be asked for from the middle of a head to the middle of another.
TEST(GgufDeepseek, ReadsAnyRowsOfADividedMap) {
  const TemporaryFolder work;
  const StoredModel there = saved(tiny_deepseek("deepseek_v2"), work / "hf");
  write_gguf(there, work / "x.gguf", GgmlType::f32);
  const StoredModel back = open_model(work / "x.gguf");
  const std::string name = "layers.0.attention.wkv_b.weight";
  for (const auto& [begin, end] : {std::pair{0, 64}, {3, 5}, {5, 7}, {14, 33}, {63, 64}}) {
    std::vector<float> expected(static_cast<size_t>(end - begin) * 12);
    std::vector<float> got(expected.size(), -1);
    there.read(name, begin, end, expected);
    back.read(name, begin, end, got);
    EXPECT_EQ(got, expected) << begin << ' ' << end;
  }
}

// Files from before the heads were divided hold kv_b as published, and count all heads.
TEST(GgufDeepseek, ReadsFilesWithJoinedMaps) {
  for (const DecoderConfig& config : {tiny_deepseek("deepseek_v2"), grouped_v3()}) {
    const TemporaryFolder work;
    const StoredModel there = saved(config, work / "hf");
    write_gguf(there, work / "x.gguf", GgmlType::f32);
    const GgufFile file(work / "x.gguf");
    GgufHeader header;
    header.metadata = file.metadata();
    header.metadata.set("ingot.config", "{}");
    header.metadata.erase("deepseek2.attention.key_length_mla");
    header.metadata.erase("deepseek2.attention.value_length_mla");
    header.metadata.set_u32("deepseek2.attention.head_count_kv", 4);
    header.metadata.set_u32("deepseek2.attention.key_length", 14);
    header.metadata.set_u32("deepseek2.attention.value_length", 10);
    std::vector<std::vector<float>> joined;
    for (const GgufTensor& tensor : file.tensors()) {
      if (!tensor.name.ends_with("attn_k_b.weight") && !tensor.name.ends_with("attn_v_b.weight")) {
        header.tensors.push_back(tensor);
      }
    }
    const size_t others = header.tensors.size();
    for (int layer = 0; layer < 3; ++layer) {
      header.tensors.push_back(
          {concat("blk.", layer, ".attn_kv_b.weight"), GgmlType::f32, Shape{64, 12}});
      joined.emplace_back(64 * 12);
      there.read(concat("layers.", layer, ".attention.wkv_b.weight"), 0, 64, joined.back());
    }
    GgufWriter writer(work / "old.gguf", header);
    for (size_t i = 0; i < others; ++i) {
      writer.write(file.bytes(file.tensor(header.tensors[i].name)));
    }
    for (const auto& values : joined) {
      writer.write(std::as_bytes(std::span(values)));
    }
    writer.commit();
    const StoredModel old = open_model(work / "old.gguf");
    EXPECT_EQ(old.model_type, there.model_type);
    EXPECT_LT(normwise_error(logits_of(old), logits_of(there)), 1e-6);
    write_gguf(old, work / "new.gguf", GgmlType::f32);  // written as today's
    EXPECT_TRUE(GgufFile(work / "new.gguf").contains("blk.0.attn_k_b.weight"));
  }
}

TEST(GgufDeepseek, RefusesWhatLlamaCppComputesOtherwise) {
  const TemporaryFolder work;
  int number = 0;
  const auto refusal = [&](const DecoderConfig& config) {
    const StoredModel there = saved(config, work / concat("hf", ++number));
    return message_of(ErrorKind::config,
                      [&] { write_gguf(there, work / "x.gguf", GgmlType::f32); });
  };
  DecoderConfig c = tiny_deepseek("deepseek_v2");
  c.moe.groups = 3;
  c.moe.groups_kept = 2;
  EXPECT_THAT(refusal(c), HasSubstr(R"(moe.group_score is "best", would be "best_two")"));
  c = tiny_deepseek("deepseek_v2");
  c.moe.shared = 0;
  EXPECT_THAT(refusal(c), HasSubstr("no deepseek2 without shared experts"));
  c = tiny_deepseek("deepseek_v2");
  c.rope.scaling = "yarn";
  c.rope.factor = 4;
  c.rope.mscale = 1;
  c.rope.mscale_all_dim = 0.5;
  EXPECT_THAT(refusal(c), HasSubstr("rope.mscale is 1.0, would be 0.5"));
  c = grouped_v3();
  c.rope.layout = "half_split";
  EXPECT_THAT(refusal(c), HasSubstr(R"(rope.layout is "half_split", would be "interleaved")"));
  EXPECT_FALSE(file_exists(work / "x.gguf"));
}

TEST(GgufDeepseek, SaysThatLlamaCppHasOneEpsForAllNorms) {
  const TemporaryFolder work;
  DecoderConfig c = tiny_deepseek("deepseek_v2");
  c.norm_eps = 1e-5;
  c.latent.q_rank = 14;
  EXPECT_THAT(write_gguf(saved(c, work / "hf"), work / "x.gguf", GgmlType::f32).differs,
              ElementsAre("llama.cpp has one eps for all norms, 1e-05; the norms of the latents "
                          "have 1e-06"));
}

TEST(GgufDeepseek, RefusesSizesThatContradictTheTensors) {
  const TemporaryFolder work;
  write_gguf(saved(tiny_deepseek("deepseek_v2"), work / "hf"), work / "x.gguf", GgmlType::f32);
  const auto refusal = [&](const char* key, int64_t value) {
    GgufMetadata wrong;
    wrong.set("ingot.config", "{}");
    wrong.set_u32(key, value);
    rewrite_gguf(GgufFile(work / "x.gguf"), work / "y.gguf", std::nullopt, wrong);
    return message_of(ErrorKind::format, [&] { open_model(work / "y.gguf"); });
  };
  EXPECT_THAT(refusal("deepseek2.expert_count", int64_t{1} << 30),
              HasSubstr("deepseek2.expert_count: no router has as many rows: 1073741824 experts"));
  EXPECT_THAT(refusal("deepseek2.attention.key_length_mla", 8),
              HasSubstr("no size of latent attention is 0: kv_lora_rank is 12"));
  EXPECT_THAT(refusal("deepseek2.attention.value_length_mla", 11),
              HasSubstr("attn_v_b.weight is [4, 10, 12], the metadata says [4, 11, 12]"));
}

}  // namespace
}  // namespace ingot::testing
