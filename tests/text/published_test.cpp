#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <iostream>

#include "ingot/base/files.h"
#include "ingot/base/json.h"
#include "ingot/base/json_library.h"
#include "ingot/text/load_tokenizer.h"
#include "ingot/text/stream_decoder.h"
#include "ingot/text/tiktoken.h"
#include "ingot/text/tokenizer_json.h"
#include "ingot/text/utf8.h"
#include "tests/support/paths.h"
#include "tests/text/sha256.h"

// Ids and texts of published tokenizers as other programs give them: every folder tok-* of the data
// folder with a vocabulary and an oracle.
namespace ingot::testing {
namespace {

using Json = nlohmann::json;
using Path = std::filesystem::path;

std::string sha256_of(const TokenIds& ids) {
  return sha256({reinterpret_cast<const char*>(ids.data()), ids.size() * sizeof(TokenId)});
}

std::string streamed(const Tokenizer& tokenizer, const TokenIds& ids) {
  StreamDecoder decoder(tokenizer);
  std::string out;
  for (const TokenId id : ids) {
    const std::string part = decoder.add(id);
    EXPECT_TRUE(is_valid_utf8(part));
    out += part;
  }
  return out + decoder.finish();
}

// What a document's entry tells of the ids of a stretch of a corpus.
void expect_document(const Tokenizer& tokenizer, const Json& entry, EncodeOptions options) {
  const std::string text = read_file(*data_folder() / entry["file"].get<std::string>())
                               .substr(entry["from_byte"].get<size_t>(), entry["bytes"]);
  const TokenIds ids = tokenizer.encode(text, options);
  EXPECT_EQ(ids.size(), entry["n_tokens"].get<size_t>()) << entry["file"];
  EXPECT_EQ(sha256_of(ids), entry["sha256_u32le"]) << entry["file"];
  EXPECT_EQ(streamed(tokenizer, ids), tokenizer.decode(ids)) << entry["file"];
}

void expect_decoded(const Tokenizer& tokenizer, const Json& entry) {
  const auto ids = entry["ids"].get<TokenIds>();
  const auto text = entry["text"].get<std::string>();
  const std::string expected = entry.value("decoded", text);
  EXPECT_EQ(tokenizer.decode(ids), expected) << text;
  EXPECT_EQ(streamed(tokenizer, ids), expected) << text;
}

// Reads a file of which a compressed form may be there instead.
TokenizerSpec spec_of(const Path& path) {
  if (file_exists(path)) {
    return read_tokenizer_json(path);
  }
  const TemporaryFolder folder;
  const Path plain = folder / "tokenizer.json";
  const std::string command = "gzip -dc '" + path.string() + ".gz' > '" + plain.string() + "'";
  if (std::system(command.c_str()) != 0) {
    throw std::runtime_error("cannot unpack " + path.string());
  }
  return read_tokenizer_json(plain);
}

// Hugging Face's library matches special tokens in the text and skips them when it decodes.
void expect_hugging_face(const Path& tokenizer_json, const Path& oracle) {
  SCOPED_TRACE(tokenizer_json.string());
  const Tokenizer tokenizer(spec_of(tokenizer_json));
  const Json expected = parse_json_file(oracle);
  ASSERT_FALSE(expected["cases"].empty());
  for (const Json& entry : expected["cases"]) {
    const auto text = entry["text"].get<std::string>();
    EXPECT_EQ(tokenizer.encode(text, {.parse_special = true}), entry["ids"].get<TokenIds>())
        << text;
    const Json& with_special =
        entry.contains("ids_with_special") ? entry["ids_with_special"] : entry["ids"];
    EXPECT_EQ(tokenizer.encode(text, {.add_special = true, .parse_special = true}),
              with_special.get<TokenIds>())
        << text;
    expect_decoded(tokenizer, entry);
  }
  const Json documents = expected.value("documents", Json::array());
  for (const Json& entry : documents) {
    expect_document(tokenizer, entry, {.parse_special = true});
  }
}

std::vector<Path> folders() {
  std::vector<Path> out;
  if (data_folder()) {
    for (const std::string& name : list_folder(*data_folder())) {
      if (name.starts_with("tok-")) {
        out.push_back(*data_folder() / name);
      }
    }
  }
  return out;
}

bool has_tokenizer_json(const Path& path) {
  return file_exists(path) || file_exists(path.string() + ".gz");
}

TEST(PublishedTokenizers, GiveEveryIdOfTokenizerJson) {
  if (!data_folder()) {
    GTEST_SKIP() << no_data_folder;
  }
  int64_t found = 0;
  for (const Path& folder : folders()) {
    for (const std::string& name : list_folder(folder)) {
      if (!name.ends_with("oracle.json")) {
        continue;
      }
      const std::string stem = name.substr(0, name.size() - std::string("oracle.json").size());
      if (const Path file = folder / (stem + "tokenizer.json"); has_tokenizer_json(file)) {
        ++found;
        expect_hugging_face(file, folder / name);
      } else if (stem.empty() && parse_json_file(folder / name).contains("cases")) {
        std::cout << folder.filename().string() << ": ids without a vocabulary, not tested\n";
      }
    }
  }
  EXPECT_GE(found, 4);
}

TEST(PublishedTokenizers, GiveEveryIdOfTiktoken) {
  if (!data_folder()) {
    GTEST_SKIP() << no_data_folder;
  }
  int64_t found = 0;
  for (const Path& folder : folders()) {
    for (const std::string& name : list_folder(folder)) {
      if (!name.ends_with(".tiktoken")) {
        continue;
      }
      ++found;
      SCOPED_TRACE(name);
      const Tokenizer tokenizer = load_tokenizer(folder / name);
      const Json expected = parse_json_file(folder / (Path(name).stem().string() + ".oracle.json"));
      for (const Json& entry : expected["plain"]) {
        const auto text = entry["text"].get<std::string>();
        EXPECT_EQ(tokenizer.encode(text), entry["ids"].get<TokenIds>()) << text;
        expect_decoded(tokenizer, entry);
      }
      for (const Json& entry : expected["special"]) {
        EXPECT_EQ(tokenizer.encode(entry["text"].get<std::string>(), {.parse_special = true}),
                  entry["ids_all_special"].get<TokenIds>());
      }
      for (const Json& entry : expected["documents"]) {
        expect_document(tokenizer, entry, {});
      }
    }
  }
  EXPECT_GE(found, 3);
}

// The patterns that a rank file's name stands for are those that its publisher states.
TEST(PublishedTokenizers, HaveThePatternsOfTheirNames) {
  if (!data_folder()) {
    GTEST_SKIP() << no_data_folder;
  }
  for (const char* name : {"r50k_base", "cl100k_base", "o200k_base"}) {
    const TiktokenEncoding stated =
        encoding_beside(*data_folder() / "tok-openai" / (std::string(name) + ".tiktoken"));
    const TiktokenEncoding known = *tiktoken_encoding(name);
    EXPECT_EQ(known.pattern, stated.pattern);
    EXPECT_EQ(std::map(known.special.begin(), known.special.end()),
              std::map(stated.special.begin(), stated.special.end()));
  }
}

TEST(PublishedTokenizers, GiveEveryIdOfVocabAndMerges) {
  if (!data_folder()) {
    GTEST_SKIP() << no_data_folder;
  }
  const Tokenizer tokenizer = load_tokenizer(*data_folder() / "tok-gpt2-hf");
  const Json expected = parse_json_file(*data_folder() / "tok-openai/r50k_base.oracle.json");
  for (const Json& entry : expected["plain"]) {
    EXPECT_EQ(tokenizer.encode(entry["text"].get<std::string>()), entry["ids"].get<TokenIds>());
  }
  for (const Json& entry : expected["documents"]) {
    expect_document(tokenizer, entry, {});
  }
  EXPECT_EQ(tokenizer.eos(), 50256);
}

TEST(PublishedTokenizers, GiveEveryIdOfSentencePiece) {
  if (!data_folder()) {
    GTEST_SKIP() << no_data_folder;
  }
  int64_t found = 0;
  for (const Path& folder : folders()) {
    if (!file_exists(folder / "oracle.json")) {
      continue;
    }
    const Json oracle = parse_json_file(folder / "oracle.json");
    const Json entries = oracle.value("models", Json::object());
    for (const auto& [name, expected] : entries.items()) {
      ++found;
      SCOPED_TRACE(name);
      const Tokenizer tokenizer = load_tokenizer(folder / (name + ".model"));
      EXPECT_EQ(tokenizer.vocabulary_size(), expected["vocab_size"]);
      EXPECT_EQ(tokenizer.unknown().value_or(-1), expected["unk"]);
      EXPECT_EQ(tokenizer.bos().value_or(-1), expected["bos"]);
      EXPECT_EQ(tokenizer.eos().value_or(-1), expected["eos"]);
      EXPECT_EQ(tokenizer.pad().value_or(-1), expected["pad"]);
      for (const Json& entry : expected["cases"]) {
        const auto text = entry["text"].get<std::string>();
        EXPECT_EQ(tokenizer.encode(text), entry["ids"].get<TokenIds>()) << text;
        expect_decoded(tokenizer, entry);
        if (entry.contains("nbest3")) {
          EXPECT_EQ(tokenizer.best_segmentations(text, 3),
                    entry["nbest3"].get<std::vector<TokenIds>>())
              << text;
        }
      }
    }
  }
  EXPECT_GE(found, 3);
}

}  // namespace
}  // namespace ingot::testing
