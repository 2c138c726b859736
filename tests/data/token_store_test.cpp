#include "ingot/data/token_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <omp.h>

#include <fstream>
#include <set>

#include "ingot/base/files.h"
#include "ingot/data/sample.h"
#include "ingot/data/token_rows.h"
#include "ingot/data/tokenize.h"
#include "tests/data/tiny_tokenizer.h"
#include "tests/support/message.h"
#include "tests/support/paths.h"

namespace ingot::testing {
namespace {

using ::testing::HasSubstr;

class Store : public ::testing::Test {
 protected:
  Store() : renderer_(tiny_tokenizer(), tiny_template(), {}) {}

  std::string put(const std::string& name, const std::string& bytes) const {
    std::ofstream(folder / name, std::ios::binary) << bytes;
    return (folder / name).string();
  }
  // Rows of 0, 1, 2 … words "the".
  std::string words(const std::string& name, const std::vector<int>& counts) const {
    std::string text;
    for (size_t i = 0; i < counts.size(); ++i) {
      std::string said;
      for (int word = 0; word < counts[i]; ++word) {
        said += word == 0 ? "the" : " the";
      }
      text += R"({"prompt": ")" + std::to_string(i) + R"( ", "completion": ")" + said + "\"}\n";
    }
    return put(name, text);
  }
  std::shared_ptr<const TokenStore> made(const std::vector<std::string>& files,
                                         const TokenizeOptions& options = {},
                                         const std::string& name = "store") const {
    EXPECT_TRUE(tokenize(files, renderer_, options, folder / name));
    return std::make_shared<const TokenStore>(folder / name, true);
  }
  std::string bytes_of(const std::string& name) const {
    return read_file(folder / name / "tokens.bin") + read_file(folder / name / "rows.bin") +
           read_file(folder / name / "store.json");
  }
  static std::vector<int64_t> all_rows(const TokenStore& store) {
    std::vector<int64_t> out;
    for (int64_t i = 0; i < store.size(); ++i) {
      out.push_back(i);
    }
    return out;
  }

  TemporaryFolder folder;
  Renderer renderer_;
};

TEST_F(Store, HoldsTheRowsThatTheRendererMakes) {
  const std::string file = words("a.jsonl", {1, 5, 2});
  const auto store = made({file});
  ASSERT_EQ(store->size(), 3);
  const std::vector<Example> examples = read_examples({file}, {});
  for (int64_t i = 0; i < 3; ++i) {
    const TokenRow wanted = renderer_(examples[static_cast<size_t>(i)]).at(0);
    const TokenRow got = store->read(i);
    EXPECT_EQ(got.ids, wanted.ids);
    EXPECT_EQ(got.learnt, wanted.learnt);
    EXPECT_EQ(store->place_text(i), file + ":" + std::to_string(i + 1));
    EXPECT_EQ(store->learnt(i, 0, got.size()), wanted.targets());
  }
  EXPECT_EQ(store->manifest().targets(), 1 + 5 + 2 + 3);
  EXPECT_EQ(store->manifest().tokenizer_hash, renderer_.tokenizer().hash());
}

TEST_F(Store, IsTheSameOnAnyNumberOfThreadsAndAfterBeingStopped) {
  std::string text;
  for (int i = 0; i < 13000; ++i) {  // four blocks
    text += R"({"prompt": "the word )" + std::to_string(i) + R"( and the light )" +
            std::string(900, 'x') + R"(", "completion": "light )" + std::to_string(i) + "\"}\n";
  }
  const std::string file = put("a.jsonl", text);
  made({file}, {}, "whole");
  TokenizeOptions stopped;
  int64_t blocks = 0;
  stopped.stop = [&] { return ++blocks % 2 == 0; };
  int64_t starts = 1;
  while (!tokenize({file}, renderer_, stopped, folder / "parts")) {
    ++starts;
    // What a kill leaves behind its last journal.
    std::ofstream(folder / "parts" / "tokens.bin", std::ios::binary | std::ios::app) << "junk";
  }
  EXPECT_GE(starts, 2);
  EXPECT_EQ(bytes_of("parts"), bytes_of("whole"));
  const int threads = omp_get_max_threads();
  omp_set_num_threads(1);
  made({file}, {}, "again");
  omp_set_num_threads(threads);
  EXPECT_EQ(bytes_of("again"), bytes_of("whole"));
}

TEST_F(Store, IsMadeAgainWhereFilesOrOptionsChange) {
  const std::string file = words("a.jsonl", {1, 2});
  made({file});
  const auto before = std::filesystem::last_write_time(folder / "store" / "store.json");
  made({file});
  EXPECT_EQ(std::filesystem::last_write_time(folder / "store" / "store.json"), before);
  words("a.jsonl", {1, 2, 3});
  EXPECT_EQ(made({file})->size(), 3);
  TokenizeOptions dropping;
  dropping.read.policy = RowPolicy::drop;
  EXPECT_NE(store_key({file}, renderer_, {}), store_key({file}, renderer_, dropping));
}

TEST_F(Store, CountsDuplicatesAndRefusesAnIdOfTwoRows) {
  const std::string twice =
      put("a.jsonl",
          "{\"prompt\": \"a\", \"completion\": \"b\"}\n{\"prompt\": \"c\", \"completion\": \"d\"}\n"
          "{\"prompt\": \"a\", \"completion\": \"b\"}\n");
  EXPECT_EQ(made({twice})->size(), 3);
  EXPECT_EQ(made({twice})->manifest().sources[0].duplicates, 1);
  TokenizeOptions options;
  options.duplicates = Duplicates::drop;
  EXPECT_EQ(made({twice}, options)->size(), 2);
  options.duplicates = Duplicates::error;
  EXPECT_THAT(
      message_of(ErrorKind::format, [&] { tokenize({twice}, renderer_, options, folder / "s"); }),
      HasSubstr("a.jsonl:3: the row says what an earlier one says"));
  const std::string ids = put("b.jsonl",
                              "{\"id\": \"x\", \"prompt\": \"a\", \"completion\": \"b\"}\n"
                              "{\"id\": \"x\", \"prompt\": \"c\", \"completion\": \"d\"}\n");
  EXPECT_THAT(message_of(ErrorKind::format, [&] { tokenize({ids}, renderer_, {}, folder / "s"); }),
              HasSubstr("b.jsonl:2: the id 'x' is that of an earlier row with another content"));
  options = {};
  options.read.policy = RowPolicy::drop;
  EXPECT_THAT(made({ids}, options)->manifest().counts().text(),
              HasSubstr("1 duplicate (" + ids + ":2"));
}

TEST_F(Store, SaysWhatIsDamaged) {
  const std::string file = words("a.jsonl", {1, 2});
  made({file});
  const auto tokens = folder / "store" / "tokens.bin";
  std::string bytes = read_file(tokens);
  std::ofstream(tokens, std::ios::binary) << bytes.substr(0, bytes.size() - 4);
  EXPECT_THAT(message_of(ErrorKind::format, [&] { TokenStore(folder / "store"); }),
              HasSubstr("the store is damaged: tokenize again"));
  bytes[0] ^= 1;
  std::ofstream(tokens, std::ios::binary) << bytes;
  EXPECT_THAT(message_of(ErrorKind::format, [&] { TokenStore(folder / "store", true); }),
              HasSubstr("the content's hash is"));
  EXPECT_THAT(
      message_of(ErrorKind::format,
                 [&] { tokenize({put("empty.jsonl", "\n \n")}, renderer_, {}, folder / "s"); }),
      HasSubstr("no row is left to train on"));
  EXPECT_THAT(message_of(ErrorKind::config, [&] { tokenize({}, renderer_, {}, folder / "s"); }),
              HasSubstr("no files are given"));
}

TEST_F(Store, RowsBecomeSamplesByTheirPolicy) {
  const auto store = made({words("a.jsonl", {1, 2, 30, 4})});
  const std::vector<int64_t> rows = all_rows(*store);
  const int64_t long_row = store->length(2);
  TokenRowsOptions options;
  options.sequence = 12;
  options.packing = Packing::none;
  const auto lengths = [&](const TokenRows& samples) {
    std::vector<int64_t> out;
    for (int64_t i = 0; i < samples.size(); ++i) {
      out.push_back(samples.get(i).inputs());
    }
    return out;
  };
  const std::vector<int64_t> plain = {store->length(0) - 1, store->length(1) - 1,
                                      store->length(3) - 1};
  EXPECT_EQ(lengths(TokenRows(store, rows, options)),
            (std::vector<int64_t>{plain[0], plain[1], 12, plain[2]}));
  options.long_rows = LongRows::drop;
  const TokenRows dropped(store, rows, options);
  EXPECT_EQ(lengths(dropped), plain);
  EXPECT_EQ(dropped.report().dropped, 1);
  EXPECT_THAT(dropped.report().first_long,
              HasSubstr("a.jsonl:3: " + std::to_string(long_row) + " tokens"));
  options.long_rows = LongRows::split;
  const TokenRows split(store, rows, options);
  EXPECT_EQ(split.report().targets, store->manifest().targets());  // each token is learnt once
  options.long_rows = LongRows::raise;
  EXPECT_THAT(message_of(ErrorKind::format, [&] { TokenRows(store, rows, options); }),
              HasSubstr("a.jsonl:3: " + std::to_string(long_row) +
                        " tokens, more than train.sequence + 1 = 13"));
  options.long_rows = LongRows::drop;
  options.sequence = 1;
  EXPECT_THAT(message_of(ErrorKind::format, [&] { TokenRows(store, rows, options); }),
              HasSubstr("no row is left to train on"));
}

TEST_F(Store, TruncatedRowsOfWhichNothingIsLearntAreLeftOut) {
  const std::string file =
      put("a.jsonl", R"({"prompt": "the the the the the the the the", "completion": "light"})"
                     "\n{\"prompt\": \"a\", \"completion\": \"b\"}\n");
  TokenRowsOptions options;
  options.sequence = 5;
  const auto store = made({file});
  const TokenRows rows(store, all_rows(*store), options);
  EXPECT_EQ(rows.report().dropped, 1);
  EXPECT_EQ(rows.report().rows, 1);
}

TEST_F(Store, PackedSamplesHoldEveryDocumentOnceWithItsPositions) {
  const auto store = made({words("a.jsonl", {3, 1, 4, 1, 5, 9, 2, 6})});
  TokenRowsOptions options;
  options.sequence = 24;
  const TokenRows rows(store, all_rows(*store), options);
  EXPECT_LT(rows.size(), store->size());
  std::multiset<TokenIds> seen, wanted;
  for (int64_t i = 0; i < store->size(); ++i) {
    wanted.insert(store->read(i).ids);
  }
  for (int64_t i = 0; i < rows.size(); ++i) {
    const Sample sample = rows.get(i);
    for (const TokenRow& document : sample.documents) {
      seen.insert(document.ids);
    }
    const Batch batch = batch_of(std::vector<Sample>{sample}, 24);
    const auto ids = batch.ids.values<int64_t>();
    const auto labels = batch.labels.values<int64_t>();
    const auto places = batch.positions->values<int64_t>();
    const auto documents = batch.documents->values<int32_t>();
    size_t at = 0;
    for (size_t d = 0; d < sample.documents.size(); ++d) {
      const TokenRow& row = sample.documents[d];
      for (size_t t = 0; t + 1 < row.ids.size(); ++t, ++at) {
        EXPECT_EQ(ids[at], row.ids[t]);
        EXPECT_EQ(places[at], static_cast<int64_t>(t));
        EXPECT_EQ(documents[at], static_cast<int32_t>(d));
        EXPECT_EQ(labels[at], row.learnt[t + 1] != 0 ? row.ids[t + 1] : ignored_label);
      }
    }
    for (; at < 24; ++at) {
      EXPECT_EQ(labels[at], ignored_label);
      EXPECT_EQ(documents[at], static_cast<int32_t>(sample.documents.size()));
    }
  }
  EXPECT_EQ(seen, wanted);
  const Sample big = TokenRows(store, all_rows(*store), options).get(0);
  EXPECT_THAT(message_of(ErrorKind::argument, [&] { batch_of(std::vector<Sample>{big}, 4); }),
              HasSubstr("does not fit rows of 4"));
  EXPECT_EQ(batch_of(std::vector<Sample>{big}).ids.size(1) % 16, 0);
}

TEST_F(Store, SplitsByContentSoThatEqualRowsStayTogether) {
  std::string text;
  for (int i = 0; i < 2000; ++i) {
    text += "{\"prompt\": \"p\", \"completion\": \"row " + std::to_string(i % 1000) + "\"}\n";
  }
  const auto store = made({put("a.jsonl", text)});
  const RowSplit split = split_rows(*store, 0.1);
  EXPECT_NEAR(static_cast<double>(split.held_out.size()), 200, 60);
  EXPECT_EQ(split.held_out.size() + split.training.size(), 2000u);
  std::set<uint64_t> training;
  for (const int64_t row : split.training) {
    training.insert(store->place(row).content);
  }
  for (const int64_t row : split.held_out) {
    EXPECT_FALSE(training.contains(store->place(row).content));
  }
  EXPECT_EQ(split_rows(*store, 0).held_out.size(), 0u);
}

}  // namespace
}  // namespace ingot::testing
