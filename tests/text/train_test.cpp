#include <gtest/gtest.h>

#include "ingot/base/files.h"
#include "ingot/base/json.h"
#include "ingot/base/json_library.h"
#include "ingot/text/byte_alphabet.h"
#include "ingot/text/tokenizer.h"
#include "ingot/text/tokenizer_json.h"
#include "ingot/text/train_bpe.h"
#include "tests/support/paths.h"

namespace ingot::testing {
namespace {

using Json = nlohmann::json;

TieBreak tie_named(const std::string& name) {
  if (name == "smallest_ids") {
    return TieBreak::smallest_ids;
  }
  if (name == "largest_bytes") {
    return TieBreak::largest_bytes;
  }
  EXPECT_EQ(name, "first_seen");
  return TieBreak::first_seen;
}

std::vector<std::pair<std::string, std::string>> spelled(const TokenizerSpec& spec) {
  std::vector<std::pair<std::string, std::string>> out;
  for (const MergeRule& merge : spec.merges) {
    out.emplace_back(spec.tokens[static_cast<size_t>(merge.left)],
                     spec.tokens[static_cast<size_t>(merge.right)]);
  }
  return out;
}

TEST(BpeTraining, FollowsTheReferenceUnderEveryTieBreak) {
  int64_t found = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator(oracle_folder() / "methods" / "data")) {
    if (!entry.path().filename().string().starts_with("bpe_train")) {
      continue;
    }
    ++found;
    SCOPED_TRACE(entry.path().string());
    const Json oracle = parse_json_file(entry.path());
    const Json& hyper = oracle["hyper"];
    const Json& expected = oracle["expected"];
    BpeTraining settings;
    settings.vocabulary = 256 + hyper["merges"].get<int64_t>();
    settings.least_count = 1;
    settings.ties = tie_named(hyper["tie_break"]);
    settings.bytes_by_symbol = hyper["byte_ids"] == "gpt2";
    BpeTrainer trainer(settings);
    trainer.add(oracle["inputs"]["text"].get<std::string>());
    for (size_t i = 0; i < trainer.words().size(); ++i) {
      EXPECT_EQ(trainer.words().word(i), expected["pre_tokens"][i].get<std::string>());
      EXPECT_EQ(trainer.words().count(i), expected["pre_token_counts"][i].get<int64_t>());
    }
    EXPECT_EQ(trainer.words().size(), expected["pre_tokens"].size());
    const TrainedBpe trained = trainer.train();
    EXPECT_EQ(Json(spelled(trained.tokenizer)), expected["merges"]);
    EXPECT_EQ(Json(trained.merge_counts), expected["merge_counts"]);
    const Tokenizer tokenizer(trained.tokenizer);
    EXPECT_EQ(tokenizer.encode(oracle["inputs"]["encode"].get<std::string>()),
              expected["encoded_ids"].get<TokenIds>());
  }
  EXPECT_GE(found, 3);
}

TEST(BpeTraining, LearnsTheMergesOfAnotherTrainerOnACorpus) {
  if (!data_folder()) {
    GTEST_SKIP() << no_data_folder;
  }
  const auto folder = *data_folder() / "tok-bpe-train";
  BpeTraining settings;
  settings.vocabulary = 500;
  settings.ties = TieBreak::largest_bytes;
  settings.special = {"<|endoftext|>"};
  BpeTrainer trainer(settings);
  trainer.add(read_file(folder / "corpus.en"));
  const TokenizerSpec spec = trainer.train().tokenizer;
  std::string merges;
  for (const auto& [left, right] : spelled(spec)) {
    merges += left + " " + right + "\n";
  }
  EXPECT_EQ(merges, read_file(folder / "train-bpe-reference-merges.txt"));
  const Json vocabulary = parse_json_file(folder / "train-bpe-reference-vocab.json");
  EXPECT_EQ(vocabulary.size(), spec.tokens.size());
  for (const auto& [token, id] : vocabulary.items()) {
    EXPECT_EQ(spec.tokens.at(id.get<size_t>()), token);
  }
}

TEST(BpeTraining, EndsWithTheTokenizerOfHuggingFacesTrainerWhenNoPairIsLeft) {
  if (!data_folder()) {
    GTEST_SKIP() << no_data_folder;
  }
  const auto folder = *data_folder() / "tok-bpe-train";
  const TokenizerSpec expected = read_tokenizer_json(folder / "hf_bytelevel_full.tokenizer.json");
  BpeTraining settings;
  settings.vocabulary = 30000;
  settings.least_count = 1;
  settings.all_bytes = false;
  BpeTrainer trainer(settings);
  trainer.add(read_file(folder / "corpus.en"));
  const TokenizerSpec spec = trainer.train().tokenizer;
  EXPECT_EQ(spec.tokens.size(), expected.tokens.size());
  EXPECT_EQ(spelled(spec), spelled(expected));
}

}  // namespace
}  // namespace ingot::testing
