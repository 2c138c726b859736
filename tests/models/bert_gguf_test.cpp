#include "ingot/models/bert_gguf.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ingot/base/files.h"
#include "ingot/models/gguf_vocabulary_keys.h"
#include "ingot/nn/initialise.h"
#include "ingot/tensor/factories.h"
#include "tests/support/message.h"
#include "tests/support/op_case.h"
#include "tests/support/paths.h"

namespace ingot::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

void save_tiny(const std::filesystem::path& folder, const std::string& activation = "gelu") {
  BertConfig c;
  c.vocab = 12;
  c.width = 16;
  c.layers = 2;
  c.heads = 4;
  c.hidden = 32;
  c.context = 10;
  c.activation = activation;
  Bert model(c);
  nn::initialise(model, {"normal", 0.3}, 5);
  save_bert(model, folder);
}

constexpr const char* word_pieces = R"({"model": {"type": "WordPiece", "vocab": {"[PAD]": 0,
  "[UNK]": 1, "[CLS]": 2, "[SEP]": 3, "[MASK]": 4, "in": 5, "##side": 6, "out": 7}},
  "added_tokens": [{"id": 0, "content": "[PAD]"}, {"id": 1, "content": "[UNK]"},
  {"id": 2, "content": "[CLS]"}, {"id": 3, "content": "[SEP]"}, {"id": 4, "content": "[MASK]"}]})";

Tensor some_ids() { return tensor_of(std::vector<int64_t>{2, 5, 6, 3, 2, 7, 5, 3}, {2, 4}); }

TEST(BertGguf, CarriesTheEncoderThereAndBack) {
  const TemporaryFolder work;
  save_tiny(work / "hf");
  write_file(work / "hf/tokenizer.json", word_pieces);
  const ExportResult result = write_bert_gguf(work / "hf", work / "x.gguf", GgmlType::f32);
  EXPECT_THAT(result.lacks, ElementsAre(HasSubstr("no head")));
  EXPECT_TRUE(is_bert_gguf(work / "x.gguf"));
  EXPECT_TRUE(is_bert_folder(work / "hf"));
  const PretrainedBert there = load_bert(work / "hf");
  const PretrainedBert back = load_bert_gguf(work / "x.gguf");
  EXPECT_FALSE(back.model->config().mlm);
  EXPECT_TRUE(same_bits(there.model->hidden(some_ids()), back.model->hidden(some_ids())));
  EXPECT_TRUE(same_bits(there.model->sentence_embedding(some_ids()),
                        back.model->sentence_embedding(some_ids())));
}

TEST(BertGguf, SpellsWordPiecesAsLlamaCppDoes) {
  const TemporaryFolder work;
  save_tiny(work / "hf");
  write_file(work / "hf/tokenizer.json", word_pieces);
  write_bert_gguf(work / "hf", work / "x.gguf", GgmlType::f16);
  const GgufFile file(work / "x.gguf");
  const auto tokens = gguf_vocabulary_from(file.metadata(), "x");
  ASSERT_TRUE(tokens);
  EXPECT_THAT(tokens->tokens,
              ElementsAre("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "▁in", "side", "▁out",
                          "[PAD8]", "[PAD9]", "[PAD10]", "[PAD11]"));
  EXPECT_EQ(tokens->bos, 2);
  EXPECT_EQ(tokens->separator, 3);
  EXPECT_EQ(file.metadata().integer("tokenizer.ggml.mask_token_id", "x"), 4);
  EXPECT_FALSE(file.metadata().flag_or("bert.attention.causal", true, "x"));
  EXPECT_EQ(file.tensor("blk.0.attn_q.weight").type, GgmlType::f16);
  EXPECT_EQ(file.tensor("position_embd.weight").type, GgmlType::f32);
}

TEST(BertGguf, SaysWhatItCannotWrite) {
  const TemporaryFolder work;
  save_tiny(work / "hf", "relu");
  EXPECT_THAT(message_of(ErrorKind::config,
                         [&] { write_bert_gguf(work / "hf", work / "x.gguf", GgmlType::f32); }),
              HasSubstr("llama.cpp's bert has the activation gelu alone: got relu"));
  save_tiny(work / "other");
  EXPECT_THAT(write_bert_gguf(work / "other", work / "x.gguf", GgmlType::f32).lacks,
              ElementsAre(HasSubstr("no tokenizer"), HasSubstr("no head")));
  GgufMetadata wrong;
  wrong.set_u32("bert.feed_forward_length", 31);
  rewrite_gguf(GgufFile(work / "x.gguf"), work / "y.gguf", std::nullopt, wrong);
  EXPECT_THAT(message_of(ErrorKind::format, [&] { load_bert_gguf(work / "y.gguf"); }),
              HasSubstr("blk.0.ffn_up.weight is [32, 16], the metadata says [31, 16]"));
}

}  // namespace
}  // namespace ingot::testing
