#include "ingot/text/tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <random>
#include <thread>

#include "ingot/base/error.h"
#include "ingot/base/json.h"
#include "ingot/base/json_library.h"
#include "ingot/text/byte_alphabet.h"
#include "ingot/text/stream_decoder.h"
#include "ingot/text/tokenizer_json.h"
#include "ingot/text/train_bpe.h"
#include "ingot/text/train_unigram.h"
#include "ingot/text/utf8.h"
#include "tests/support/paths.h"

namespace ingot::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Json = nlohmann::json;

// A word-level tokenizer of which every word is unknown but those given, to look at what reaches
// it.
Json word_level(const std::vector<std::string>& words) {
  Json vocabulary = Json::object();
  for (const std::string& word : words) {
    vocabulary.emplace(word, vocabulary.size());
  }
  return {{"model", {{"type", "WordLevel"}, {"vocab", vocabulary}, {"unk_token", words.front()}}},
          {"added_tokens", Json::array()}};
}

Tokenizer made(const Json& json) {
  return Tokenizer(parse_tokenizer_json(json.dump(), "tokenizer.json"));
}

std::string message_of(const Json& json) {
  try {
    made(json);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::format);
    return error.what();
  }
  return "no error";
}

// The words that a pre-tokenizer makes of a text.
std::vector<std::string> words_of(const Json& pre_tokenizer, const std::string& text) {
  const PreTokenizer cuts(pre_tokenizer.dump(), "test");
  Pieces pieces = {text, {}};
  if (!text.empty()) {
    pieces.ends.push_back(text.size());
  }
  cuts.apply(pieces, true, false);
  std::vector<std::string> out;
  pieces.for_each([&](std::string_view word) { out.emplace_back(word); });
  return out;
}

std::string normalized_by(const Json& normalizer, std::string text) {
  Normalizer(normalizer.dump(), "test").apply(text, true);
  return text;
}

std::string decoded_by(const Json& decoder, const std::vector<std::string>& tokens) {
  return TokenDecoder(decoder.dump(), "test").text(tokens);
}

Json split(const char* behavior, bool invert = false) {
  return {{"type", "Split"},
          {"pattern", {{"String", "-"}}},
          {"behavior", behavior},
          {"invert", invert}};
}

TEST(PreTokenizer, SplitsWithEveryBehaviour) {
  const std::string text = "the-final--countdown";
  EXPECT_THAT(words_of(split("Removed"), text), ElementsAre("the", "final", "countdown"));
  EXPECT_THAT(words_of(split("Isolated"), text),
              ElementsAre("the", "-", "final", "-", "-", "countdown"));
  EXPECT_THAT(words_of(split("MergedWithPrevious"), text),
              ElementsAre("the-", "final-", "-", "countdown"));
  EXPECT_THAT(words_of(split("MergedWithNext"), text),
              ElementsAre("the", "-final", "-", "-countdown"));
  EXPECT_THAT(words_of(split("Contiguous"), text),
              ElementsAre("the", "-", "final", "--", "countdown"));
  EXPECT_THAT(words_of(split("Removed", true), text), ElementsAre("-", "-", "-"));
}

TEST(PreTokenizer, CutsByItsOtherRules) {
  EXPECT_THAT(words_of({{"type", "Metaspace"}, {"prepend_scheme", "first"}}, "Hey my  friend"),
              ElementsAre("▁Hey", "▁my", "▁", "▁friend"));
  EXPECT_THAT(
      words_of({{"type", "Metaspace"}, {"prepend_scheme", "never"}, {"split", false}}, "a b"),
      ElementsAre("a▁b"));
  EXPECT_THAT(words_of({{"type", "Digits"}, {"individual_digits", true}}, "a12b"),
              ElementsAre("a", "1", "2", "b"));
  EXPECT_THAT(words_of({{"type", "Digits"}}, "a12b"), ElementsAre("a", "12", "b"));
  EXPECT_THAT(words_of({{"type", "Punctuation"}}, "Hey!! you"),
              ElementsAre("Hey", "!", "!", " you"));
  EXPECT_THAT(words_of({{"type", "Whitespace"}}, "Hey man!? é"),
              ElementsAre("Hey", "man", "!?", "é"));
  EXPECT_THAT(words_of({{"type", "WhitespaceSplit"}}, "Hey, man"), ElementsAre("Hey,", "man"));
  EXPECT_THAT(words_of({{"type", "BertPreTokenizer"}}, "Hey friend!  ok"),
              ElementsAre("Hey", "friend", "!", "ok"));
  EXPECT_THAT(words_of({{"type", "UnicodeScripts"}}, "どこで生れ。Yes"),
              ElementsAre("どこで生れ", "。", "Yes"));
  EXPECT_THAT(words_of({{"type", "CharDelimiterSplit"}, {"delimiter", "|"}}, "a|b||c"),
              ElementsAre("a", "b", "c"));
  EXPECT_THAT(words_of({{"type", "FixedLength"}, {"length", 2}}, "abcde"),
              ElementsAre("ab", "cd", "e"));
  EXPECT_THAT(words_of({{"type", "ByteLevel"}, {"add_prefix_space", true}}, "Hey you"),
              ElementsAre("ĠHey", "Ġyou"));
}

TEST(Normalizer, ChangesTextByItsRules) {
  EXPECT_EQ(normalized_by({{"type", "NFD"}}, "é"), "e\u0301");
  EXPECT_EQ(normalized_by({{"type", "NFC"}}, "e\u0301"), "é");
  EXPECT_EQ(normalized_by({{"type", "NFKC"}}, "ﬁ①"), "fi1");
  EXPECT_EQ(normalized_by({{"type", "NFKD"}}, "ﬁé"), "fie\u0301");
  EXPECT_EQ(normalized_by({{"type", "Lowercase"}}, "ÄİΣ"), "äi\u0307σ");
  EXPECT_EQ(normalized_by({{"type", "StripAccents"}}, "e\u0301a"), "ea");
  EXPECT_EQ(
      normalized_by({{"type", "Strip"}, {"strip_left", true}, {"strip_right", false}}, "  a "),
      "a ");
  EXPECT_EQ(normalized_by({{"type", "Replace"}, {"pattern", {{"Regex", "a+"}}}, {"content", "$1"}},
                          "baac"),
            "b$1c");
  EXPECT_EQ(
      normalized_by({{"type", "Replace"}, {"pattern", {{"String", "."}}}, {"content", "!"}}, "a.b"),
      "a!b");
  EXPECT_EQ(normalized_by({{"type", "Prepend"}, {"prepend", "▁"}}, "a"), "▁a");
  EXPECT_EQ(
      normalized_by({{"type", "BertNormalizer"}, {"lowercase", true}}, std::string("\tÉa\0中b", 9)),
      " ea 中 b");
  EXPECT_EQ(normalized_by({{"type", "ByteLevel"}}, "a é"), "aĠÃ©");
}

TEST(TokenDecoder, JoinsTokensByItsRules) {
  EXPECT_EQ(decoded_by(nullptr, {"a", "b"}), "a b");
  EXPECT_EQ(decoded_by({{"type", "WordPiece"}}, {"un", "##aff", "##able", "do", "n't", "."}),
            "unaffable don't.");
  EXPECT_EQ(decoded_by({{"type", "Metaspace"}}, {"▁Hey", "▁my"}), "Hey my");
  EXPECT_EQ(decoded_by({{"type", "BPEDecoder"}}, {"he", "llo</w>", "you</w>"}), "hello you");
  EXPECT_EQ(decoded_by({{"type", "ByteFallback"}}, {"<0xE5>", "<0x8f>", "<0xab>", "a", "<0xE5>"}),
            "叫a\uFFFD");
  EXPECT_EQ(
      decoded_by({{"type", "Strip"}, {"content", "_"}, {"start", 1}, {"stop", 1}}, {"__a_", "_"}),
      "_a");
  EXPECT_EQ(decoded_by({{"type", "CTC"}}, {"<pad>", "h", "h", "<pad>", "e", "|", "l"}), "he l");
}

// Byte fallback in both conventions for bytes that make no character.
TEST(ByteFallback, FollowsTheReference) {
  int64_t found = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator(oracle_folder() / "methods" / "data")) {
    if (!entry.path().filename().string().starts_with("byte_fallback")) {
      continue;
    }
    ++found;
    SCOPED_TRACE(entry.path().string());
    const Json oracle = parse_json_file(entry.path());
    TokenizerSpec spec;
    spec.source = "oracle";
    spec.byte_fallback = true;
    for (const Json& character : oracle["inputs"]["characters"]) {
      spec.tokens.push_back(character);
    }
    EXPECT_EQ(spec.tokens.size(), oracle["expected"]["byte_offset"].get<size_t>());
    for (int byte = 0; byte < 256; ++byte) {
      char name[8];
      std::snprintf(name, sizeof(name), "<0x%02X>", byte);
      spec.tokens.push_back(name);
    }
    const std::string invalid = oracle["hyper"]["invalid"];
    spec.decoder = Json({{"type", "ByteFallback"}, {"invalid", invalid}}).dump();
    const Tokenizer tokenizer(spec);
    const auto ids = tokenizer.encode(oracle["inputs"]["text"].get<std::string>());
    EXPECT_EQ(ids, oracle["expected"]["encoded"].get<TokenIds>());
    EXPECT_EQ(tokenizer.decode(ids), oracle["expected"]["decoded"]);
    EXPECT_EQ(tokenizer.decode(oracle["inputs"]["invalid_ids"].get<TokenIds>()),
              oracle["expected"]["decoded_invalid"]);
  }
  EXPECT_GE(found, 2);
}

Json added(const char* content, int id, const Json& flags) {
  Json token = {{"id", id}, {"content", content}, {"special", false}, {"normalized", false}};
  token.update(flags);
  return token;
}

TEST(AddedTokens, AreFoundAsTheirFlagsSay) {
  Json json = word_level({"?", "a", "b", "xay"});
  json["pre_tokenizer"] = {{"type", "WhitespaceSplit"}};
  const auto with = [&](const char* content, const Json& flags) {
    json["added_tokens"] = {added(content, 9, flags)};
    return made(json);
  };
  EXPECT_THAT(with("xx", Json::object()).encode("axxb"), ElementsAre(1, 9, 2));
  EXPECT_THAT(with("a", {{"single_word", true}}).encode("xay a"), ElementsAre(3, 9));
  json["pre_tokenizer"] = nullptr;
  EXPECT_THAT(with("xx", {{"lstrip", true}}).encode("a  xx b"), ElementsAre(1, 9, 0));
  EXPECT_THAT(with("xx", {{"rstrip", true}}).encode("a xx  b"), ElementsAre(0, 9, 2));
  json["normalizer"] = {{"type", "Lowercase"}};
  EXPECT_THAT(with("XX", {{"normalized", true}}).encode("axXb"), ElementsAre(1, 9, 2));
  EXPECT_THAT(with("XX", Json::object()).encode("axXb"), ElementsAre(0));
  // Special ones are text unless asked for.
  const Tokenizer special = with("xx", {{"special", true}});
  EXPECT_THAT(special.encode("axxb"), ElementsAre(0));
  EXPECT_THAT(special.encode("axxb", {.parse_special = true}), ElementsAre(1, 9, 2));
  EXPECT_EQ(special.decode(TokenIds{1, 9}), "a");
  EXPECT_EQ(special.decode(TokenIds{1, 9}, {.skip_special = false}), "a xx");
}

TEST(Tokenizer, NamesWhatIsWrongInItsFile) {
  const Json good = word_level({"?", "a"});
  const auto with = [&](const char* key, const Json& value) {
    Json json = good;
    json[key] = value;
    return message_of(json);
  };
  EXPECT_THAT(with("normalizer", {{"type", "Rot13"}}),
              HasSubstr("tokenizer.json: normalizer: unknown normalizer 'Rot13'"));
  EXPECT_THAT(with("pre_tokenizer", {{"type", "Sequence"}, {"pretokenizers", {{{"type", "X"}}}}}),
              HasSubstr("pre_tokenizer.Sequence: unknown pre-tokenizer 'X'"));
  EXPECT_THAT(with("post_processor", {{"type", "X"}}), HasSubstr("unknown post-processor 'X'"));
  EXPECT_THAT(with("decoder", {{"type", "X"}}), HasSubstr("unknown decoder 'X'"));
  EXPECT_THAT(with("model", {{"type", "X"}, {"vocab", Json::object()}}),
              HasSubstr("unknown model 'X'"));
  EXPECT_THAT(with("pre_tokenizer",
                   {{"type", "Split"}, {"pattern", {{"Regex", "(a"}}}, {"behavior", "Isolated"}}),
              HasSubstr("PCRE2 refuses the pattern (a"));
  const Json bpe = {{"type", "BPE"}, {"vocab", {{"a", 0}, {"b", 1}}}, {"merges", {"a b"}}};
  EXPECT_THAT(
      with("model", bpe),
      HasSubstr("merge 0, of 'a' and 'b', names a token that is not in the vocabulary: 'ab'"));
  EXPECT_THAT(
      with("model", {{"type", "BPE"}, {"vocab", {{"a", 4000000000}}}, {"merges", Json::array()}}),
      HasSubstr("the id of 'a' must be a whole number"));
  EXPECT_THAT(
      with("model", {{"type", "BPE"}, {"vocab", {{"a", 9000000}}}, {"merges", Json::array()}}),
      HasSubstr("'a' has the id 9000000 in a vocabulary of 1"));
  EXPECT_THAT(message_of(Json::array()), HasSubstr("no tokenizer.json"));
  Json deep = {{"type", "NFC"}};
  for (int i = 0; i < 100; ++i) {
    deep = {{"type", "Sequence"}, {"normalizers", {deep}}};
  }
  EXPECT_THAT(with("normalizer", deep), HasSubstr("Sequences within Sequences"));
  EXPECT_THROW(parse_tokenizer_json(R"({"model": "\ud800"})", "tokenizer.json"), Error);
  EXPECT_THROW(parse_tokenizer_json("", "tokenizer.json"), Error);
}

TokenizerSpec small_bpe() {
  BpeTraining settings;
  settings.vocabulary = 300;
  settings.special = {"<|end|>"};
  BpeTrainer trainer(settings);
  trainer.add("the cat and the dog and the hat: naïve cafés, 猫と犬。 the end\n");
  return trainer.train().tokenizer;
}

TEST(Tokenizer, GivesEveryByteBackWhateverItIs) {
  const Tokenizer tokenizer(small_bpe());
  std::mt19937 random(1);
  for (int round = 0; round < 200; ++round) {
    std::string bytes;
    for (int i = 0; i < 50; ++i) {
      bytes += static_cast<char>(random());
    }
    const TokenIds ids = tokenizer.encode(bytes);
    EXPECT_EQ(tokenizer.decode_bytes(ids, {.skip_special = false}), bytes);
    EXPECT_EQ(tokenizer.decode(ids), with_replacements(bytes));
  }
  const std::string with_nul("a\0b<|end|>", 10);
  EXPECT_EQ(tokenizer.decode_bytes(tokenizer.encode(with_nul)), with_nul);
}

TEST(Tokenizer, StreamsTheTextOfAnyIdsInWholeCharacters) {
  const Tokenizer tokenizer(small_bpe());
  std::mt19937 random(2);
  for (int round = 0; round < 200; ++round) {
    TokenIds ids;
    StreamDecoder decoder(tokenizer);
    std::string streamed;
    for (int i = 0; i < 30; ++i) {
      ids.push_back(static_cast<TokenId>(random() % 320));
      const std::string part = decoder.add(ids.back());
      EXPECT_TRUE(is_valid_utf8(part));
      streamed += part;
    }
    EXPECT_EQ(streamed + decoder.finish(), tokenizer.decode(ids));
  }
}

TEST(Tokenizer, IsTheSameAfterWritingAndReading) {
  const Tokenizer first(small_bpe());
  const Tokenizer second(parse_tokenizer_json(to_tokenizer_json(first.spec()), "copy"));
  EXPECT_EQ(second.vocabulary_size(), first.vocabulary_size());
  const std::string text = "the cats and a dog's naïve 猫<|end|>";
  EXPECT_EQ(second.encode(text, {.parse_special = true}),
            first.encode(text, {.parse_special = true}));
  const Tokenizer third(parse_tokenizer_json(to_tokenizer_json(second.spec()), "copy"));
  EXPECT_EQ(third.hash(), second.hash());
  TokenizerSpec other = second.spec();
  other.merges.pop_back();
  EXPECT_NE(hash_of(other), second.hash());
}

TEST(Tokenizer, GivesEqualIdsInPartsAndFromManyThreads) {
  const Tokenizer tokenizer(small_bpe());
  std::string text;
  for (int i = 0; i < 3000; ++i) {
    text += "the hat " + std::to_string(i) + "\n";
  }
  const TokenIds whole = tokenizer.encode(text);
  TokenIds parts;
  int64_t calls = 0;
  tokenizer.encode(text, {}, [&](std::span<const TokenId> ids) {
    parts.insert(parts.end(), ids.begin(), ids.end());
    ++calls;
  });
  EXPECT_EQ(parts, whole);
  EXPECT_GT(calls, 2);
  std::vector<std::thread> threads;
  std::vector<TokenIds> found(4);
  for (size_t i = 0; i < found.size(); ++i) {
    threads.emplace_back([&, i] { found[i] = tokenizer.encode(text); });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  for (const TokenIds& ids : found) {
    EXPECT_EQ(ids, whole);
  }
}

// A word of n bytes costs n log n: sixteen times as long a word may take some twenty times as long,
// and not 256 times.
TEST(Tokenizer, TakesTimeInProportionToALongWord) {
  const Tokenizer tokenizer(small_bpe());
  const auto seconds = [&](size_t bytes) {
    std::string word;
    while (word.size() < bytes) {
      word += "thecat";
    }
    const auto start = std::chrono::steady_clock::now();
    EXPECT_FALSE(tokenizer.encode(word).empty());
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  };
  const double shorter = seconds(50'000);
  EXPECT_LT(seconds(800'000), 100 * shorter + 0.5);
}

// Whatever is done to a file, it is read or refused, and what is read encodes.
TEST(Tokenizer, ReadsOrRefusesDamagedFiles) {
  const std::string good = to_tokenizer_json(small_bpe());
  std::mt19937 random(3);
  int64_t read = 0;
  for (int round = 0; round < 300; ++round) {
    std::string bad = good;
    for (int i = 0; i < 3; ++i) {
      const size_t at = random() % bad.size();
      switch (random() % 4) {
        case 0: bad[at] = static_cast<char>(random()); break;
        case 1: bad.erase(at, random() % 20); break;
        case 2: bad.insert(at, bad.substr(random() % bad.size(), random() % 40)); break;
        default: bad[at] = "0123456789\"{}[],:-"[random() % 18]; break;
      }
    }
    try {
      const Tokenizer tokenizer(parse_tokenizer_json(bad, "damaged"));
      tokenizer.decode(tokenizer.encode("the cat <|end|> 猫", {true, true}));
      ++read;
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), HasSubstr("damaged"));
    }
  }
  EXPECT_GT(read, 0);
}

TEST(UnigramTraining, LearnsATokenizerThatGivesTextBack) {
  std::string text;
  for (int i = 0; i < 300; ++i) {
    text +=
        "the cat sat on the mat number " + std::to_string(i * 7919) + "\n\tand the dog sat too\n";
  }
  const TokenizerSpec spec = train_unigram({text}, {.vocabulary = 320, .special = {"<|end|>"}});
  const Tokenizer tokenizer(parse_tokenizer_json(to_tokenizer_json(spec), "trained"));
  EXPECT_EQ(tokenizer.vocabulary_size(), 320);
  const std::string sample = "the cat sat\n\ton 42 é mats";
  EXPECT_EQ(tokenizer.decode(tokenizer.encode(sample)), sample);
  EXPECT_LT(tokenizer.encode("the cat sat on the mat").size(), 22U);
  EXPECT_EQ(tokenizer.encode("<|end|>", {.parse_special = true}).size(), 1U);
}

}  // namespace
}  // namespace ingot::testing
