// The tokenizers in GGUF files, read as llama.cpp reads them.
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <sstream>

#include "ingot/base/files.h"
#include "ingot/base/json.h"
#include "ingot/base/json_library.h"
#include "ingot/io/gguf.h"
#include "ingot/models/gguf_vocabulary_keys.h"
#include "ingot/text/tokenizer.h"
#include "tests/support/paths.h"

namespace ingot::testing {
namespace {

using Json = nlohmann::json;
using Path = std::filesystem::path;

std::vector<Path> folders() {
  std::vector<Path> out;
  for (const std::string& name : list_folder(*data_folder())) {
    if (name.starts_with("tok-")) {
      out.push_back(*data_folder() / name);
    }
  }
  return out;
}

// Texts of a .inp file and the ids of each in the .out file beside it.
void expect_upstream(const Tokenizer& tokenizer, const Path& stem) {
  const std::string separator = "\n__ggml_vocab_test__\n";
  std::string texts = read_file(stem.string() + ".inp");
  std::ifstream lines(stem.string() + ".out");
  for (std::string line; std::getline(lines, line);) {
    const size_t end = std::min(texts.find(separator), texts.size());
    const std::string text = texts.substr(0, end);
    texts.erase(0, end + separator.size());
    std::istringstream words(line);
    const TokenIds expected{std::istream_iterator<TokenId>(words), {}};
    EXPECT_EQ(tokenizer.encode(text), expected) << text;
  }
}

TEST(PublishedTokenizers, GiveEveryIdOfGgufVocabularies) {
  if (!data_folder()) {
    GTEST_SKIP() << no_data_folder;
  }
  int64_t found = 0;
  for (const Path& folder : folders()) {
    if (!file_exists(folder / "oracle.json")) {
      continue;
    }
    const Json oracle = parse_json_file(folder / "oracle.json");
    const Json entries = oracle.value("vocabs", Json::object());
    for (const auto& [name, expected] : entries.items()) {
      ++found;
      SCOPED_TRACE(name);
      const Path file = folder / ("ggml-vocab-" + name + ".gguf");
      const Tokenizer tokenizer(
          from_gguf(*gguf_vocabulary_from(GgufFile(file).metadata(), file.string())));
      const auto id = [](const std::optional<TokenId>& own) { return own ? Json(*own) : Json(); };
      EXPECT_EQ(id(tokenizer.bos()), expected["bos"]);
      EXPECT_EQ(id(tokenizer.eos()), expected["eos"]);
      for (const Json& entry : expected["cases"]) {
        const auto text = entry["text"].get<std::string>();
        EXPECT_EQ(tokenizer.encode(text), entry["ids"].get<TokenIds>()) << text;
      }
      expect_upstream(tokenizer, file);
    }
  }
  EXPECT_GE(found, 5);
}

// A name of every way that byte-level tokenizers cut text: read, written as tokenizer.json spells
// it, and named again.
TEST(GgufVocabularies, NameTheWayTextIsCut) {
  for (const char* pre : {"gpt-2", "llama-bpe", "qwen2", "gpt-4o", "tekken", "starcoder", "smollm",
                          "deepseek-coder", "deepseek-v3", "bloom", "viking", "falcon"}) {
    SCOPED_TRACE(pre);
    GgufVocabulary some;
    some.source = "x";
    some.model = "gpt2";
    some.pre = pre;
    some.tokens = {"a", "b"};
    const std::string cut = from_gguf(some).pre_tokenizer;
    const Json tokenizer = {
        {"pre_tokenizer", Json::parse(cut)},
        {"model", {{"type", "BPE"}, {"vocab", {{"a", 0}, {"b", 1}}}, {"merges", Json::array()}}}};
    std::string why;
    const auto named = to_gguf(tokenizer, Json(), Json(), 2, why);
    ASSERT_TRUE(named) << why;
    some.pre = named->pre;
    EXPECT_EQ(from_gguf(some).pre_tokenizer, cut) << named->pre;
  }
  // As SmolLM's file spells it.
  const Json digits = {{"type", "Digits"}, {"individual_digits", true}};
  const Json bytes = {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", true}};
  const Json model = {{"type", "BPE"}, {"vocab", {{"a", 0}}}, {"merges", Json::array()}};
  std::string why;
  const auto smollm =
      to_gguf({{"pre_tokenizer", {{"type", "Sequence"}, {"pretokenizers", {digits, bytes}}}},
               {"model", model}},
              Json(), Json(), 1, why);
  ASSERT_TRUE(smollm) << why;
  EXPECT_EQ(smollm->pre, "starcoder");
  const Json groups = {{"type", "Digits"}, {"individual_digits", false}};
  EXPECT_FALSE(
      to_gguf({{"pre_tokenizer", {{"type", "Sequence"}, {"pretokenizers", {groups, bytes}}}},
               {"model", model}},
              Json(), Json(), 1, why));
}

}  // namespace
}  // namespace ingot::testing
