// Hugging Face's `tokenizers` and OpenAI's `tiktoken`, as npm brings them, give the ids and texts
// that Ingot gives: on the tokenizers of the data folder, on those that Ingot trains, on texts of
// the corpora, on the tricky texts and on random ones.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <iostream>

#include "ingot/base/files.h"
#include "ingot/base/json.h"
#include "ingot/base/json_library.h"
#include "ingot/base/philox.h"
#include "ingot/text/load_tokenizer.h"
#include "ingot/text/tiktoken.h"
#include "ingot/text/tokenizer_json.h"
#include "ingot/text/train_bpe.h"
#include "ingot/text/train_unigram.h"
#include "ingot/text/utf8.h"
#include "ingot/text/word_pattern.h"
#include "tests/support/node.h"

namespace ingot::testing {
namespace {

using Json = nlohmann::json;
using Path = std::filesystem::path;
using Texts = std::vector<std::string>;

constexpr size_t corpus_bytes = 200000;  // of each corpus

// A text in pieces of about so many bytes, cut between characters.
void add_pieces(const std::string& text, size_t bytes, Texts& out) {
  for (size_t at = 0; at < text.size();) {
    size_t end = std::min(at + bytes, text.size());
    while (end < text.size() && (static_cast<uint8_t>(text[end]) & 0xC0) == 0x80) {
      ++end;
    }
    out.push_back(text.substr(at, end - at));
    at = end;
  }
}

Texts corpora() {
  const Path data = *data_folder();
  Texts out;
  for (const char* name :
       {"corpus-prose/botchan_en.txt", "corpus-prose/wagahai_ja.txt", "corpus-code/code.jsonl",
        "corpus-names/names.txt", "corpus-tinyshakespeare/input.txt", "corpus-wikipedia/wiki.jsonl",
        "corpus-tinystories/valid_head.txt", "corpus-wikitext2/valid.txt"}) {
    const std::string text = with_replacements(read_file(data / name));
    Texts pieces;
    add_pieces(text, 5000, pieces);
    pieces.resize(std::min(pieces.size(), corpus_bytes / 5000));
    out.insert(out.end(), pieces.begin(), pieces.end());
  }
  return out;
}

// Letters, marks, digits, signs and spaces of many scripts, all of them in Unicode since long: the
// three programs' tables are of different years.
std::string random_text(uint64_t seed) {
  constexpr std::array<std::pair<char32_t, char32_t>, 20> ranges = {
      {{0x20, 0x7E},     {0x20, 0x7E},     {0x61, 0x7A},     {0x30, 0x39},     {0x09, 0x0D},
       {0xA0, 0x17F},    {0x300, 0x36F},   {0x391, 0x3A1},   {0x410, 0x44F},   {0x5D0, 0x5EA},
       {0x627, 0x63A},   {0x905, 0x939},   {0xE01, 0xE30},   {0x2000, 0x200A}, {0x2010, 0x2027},
       {0x3041, 0x3093}, {0x4E00, 0x9FA5}, {0xAC00, 0xD7A3}, {0xFF01, 0xFF5E}, {0x1F600, 0x1F64F}}};
  const Philox random({seed, 7, 0});
  std::string out;
  uint64_t at = 0;
  const uint64_t size = random.word(at++) % 60;
  for (uint64_t i = 0; i < size; ++i) {
    const auto [low, high] = ranges[random.word(at++) % ranges.size()];
    const uint64_t run = 1 + random.word(at++) % 4;
    for (uint64_t k = 0; k < run; ++k) {
      append_utf8(out, low + static_cast<char32_t>(random.word(at++) % (high - low + 1)));
    }
  }
  return out;
}

Texts all_texts() {
  Texts out = corpora();
  for (const Json& text : parse_json_file(*data_folder() / "tok-texts/texts.json")) {
    out.push_back(with_replacements(text.get<std::string>()));
  }
  for (uint64_t seed = 0; seed < 2000; ++seed) {
    out.push_back(random_text(seed));
  }
  return out;
}

constexpr const char* tokenizers_script = R"(
import tokenizers from 'tokenizers';
const t = tokenizers.Tokenizer.fromFile(input.tokenizer);
const rows = [];
for (const text of input.texts) {
  const ids = (await t.encode(text, null, { addSpecialTokens: false })).getIds();
  const framed = (await t.encode(text, null, { addSpecialTokens: true })).getIds();
  rows.push({ ids, framed, text: await t.decode(ids, true) });
}
answer(rows);
)";

void expect_as_tokenizers(const Node& node, const Path& file, const Tokenizer& tokenizer,
                          const Texts& texts) {
  const Json rows = node.run(tokenizers_script, {{"tokenizer", file.string()}, {"texts", texts}});
  ASSERT_EQ(rows.size(), texts.size());
  size_t tokens = 0, wrong = 0;
  for (size_t i = 0; i < texts.size() && wrong < 5; ++i) {
    const auto ids = rows[i]["ids"].get<TokenIds>();
    const TokenIds own = tokenizer.encode(texts[i], {.parse_special = true});
    const TokenIds framed =
        tokenizer.encode(texts[i], {.add_special = true, .parse_special = true});
    const std::string text = tokenizer.decode(ids);
    wrong += own != ids || framed != rows[i]["framed"].get<TokenIds>() || text != rows[i]["text"];
    EXPECT_EQ(own, ids) << texts[i];
    EXPECT_EQ(framed, rows[i]["framed"].get<TokenIds>()) << texts[i];
    EXPECT_EQ(text, rows[i]["text"].get<std::string>()) << texts[i];
    tokens += ids.size();
  }
  std::cout << file.parent_path().filename().string() << "/" << file.filename().string() << ": "
            << texts.size() << " texts, " << tokens << " tokens\n";
}

// The file as `tokenizers` reads it, unpacked where it is packed.
Path unpacked(const Path& file, const Path& folder) {
  if (file.extension() != ".gz") {
    return file;
  }
  const Path plain = folder / (file.parent_path().filename().string() + ".json");
  const std::string command = "gzip -dc '" + file.string() + "' > '" + plain.string() + "'";
  EXPECT_EQ(std::system(command.c_str()), 0);
  return plain;
}

TEST(TokenizerPeers, HuggingFacesTokenizersGivesTheSameIdsAndTexts) {
  if (!data_folder()) {
    GTEST_SKIP() << no_data_folder;
  }
  const Node node({"tokenizers@0.23"});
  if (!node.missing().empty()) {
    GTEST_SKIP() << node.missing();
  }
  const Texts texts = all_texts();
  int64_t compared = 0;
  for (const std::string& folder : list_folder(*data_folder())) {
    if (!folder.starts_with("tok-")) {
      continue;
    }
    for (const std::string& name : list_folder(*data_folder() / folder)) {
      if (name.find("tokenizer.json") != std::string::npos) {
        const Path file = unpacked(*data_folder() / folder / name, node.folder());
        expect_as_tokenizers(node, file, Tokenizer(read_tokenizer_json(file)), texts);
        ++compared;
      }
    }
  }
  EXPECT_GE(compared, 4);
}

TEST(TokenizerPeers, HuggingFacesTokenizersReadsWhatIngotTrains) {
  if (!data_folder()) {
    GTEST_SKIP() << no_data_folder;
  }
  const Node node({"tokenizers@0.23"});
  if (!node.missing().empty()) {
    GTEST_SKIP() << node.missing();
  }
  const Texts texts = all_texts();
  std::string corpus;
  for (const std::string& text : corpora()) {
    corpus += text;
  }
  BpeTraining settings;
  settings.vocabulary = 3000;
  settings.special = {"<|end|>"};
  settings.pattern = std::string(gpt2_regex);
  BpeTrainer trainer(settings);
  trainer.add(corpus);
  const std::string some = with_replacements(corpus.substr(0, 300000));
  UnigramTraining unigram;
  unigram.vocabulary = 4000;
  const std::vector<std::pair<std::string, TokenizerSpec>> trained = {
      {"bpe.json", trainer.train().tokenizer}, {"unigram.json", train_unigram({some}, unigram)}};
  for (const auto& [name, spec] : trained) {
    const Path file = node.folder() / name;
    write_file(file, to_tokenizer_json(spec));
    expect_as_tokenizers(node, file, Tokenizer(spec), texts);
  }
}

constexpr const char* tiktoken_script = R"(
import { get_encoding } from 'tiktoken';
const e = get_encoding(input.name);
const decoder = new TextDecoder();
answer(input.texts.map(text => {
  const ids = e.encode(text, [], []);
  return { ids: Array.from(ids), special: Array.from(e.encode(text, 'all')),
           text: decoder.decode(e.decode(ids)) };
}));
)";

TEST(TokenizerPeers, TiktokenGivesTheSameIdsAndTexts) {
  if (!data_folder()) {
    GTEST_SKIP() << no_data_folder;
  }
  const Node node({"tiktoken@1"});
  if (!node.missing().empty()) {
    GTEST_SKIP() << node.missing();
  }
  const Texts texts = all_texts();
  for (const std::string name : {"r50k_base", "cl100k_base", "o200k_base"}) {
    const Tokenizer tokenizer =
        load_tokenizer(*data_folder() / "tok-openai" / (name + ".tiktoken"));
    const Json rows = node.run(tiktoken_script, {{"name", name}, {"texts", texts}});
    ASSERT_EQ(rows.size(), texts.size());
    size_t tokens = 0;
    for (size_t i = 0; i < texts.size(); ++i) {
      const auto ids = rows[i]["ids"].get<TokenIds>();
      ASSERT_EQ(tokenizer.encode(texts[i]), ids) << name << ": " << texts[i];
      ASSERT_EQ(tokenizer.encode(texts[i], {.parse_special = true}),
                rows[i]["special"].get<TokenIds>())
          << name << ": " << texts[i];
      ASSERT_EQ(tokenizer.decode(ids), rows[i]["text"].get<std::string>()) << texts[i];
      tokens += ids.size();
    }
    std::cout << name << ": " << texts.size() << " texts, " << tokens << " tokens\n";
  }
}

}  // namespace
}  // namespace ingot::testing
