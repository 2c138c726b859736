#include "ingot/data/loader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "ingot/base/files.h"
#include "ingot/data/shuffle.h"
#include "ingot/data/text.h"
#include "ingot/data/token_file.h"
#include "ingot/tensor/factories.h"
#include "tests/support/message.h"
#include "tests/support/paths.h"

namespace ingot::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<int64_t> numbers(const Tensor& x) {
  const auto values = x.values<int64_t>();
  return {values.begin(), values.end()};
}

// Sample i is i·10, i·10 + 1, …
struct Tens : Dataset<TokenWindow> {
  int64_t size() const override { return 12; }
  TokenWindow get(int64_t i) const override { return {10 * i, 10 * i + 1, 10 * i + 2}; }
};

TEST(Batch, ShiftsTheLabelsByOne) {
  const Batch batch = batch_from(Tens(), 1, 2, 2);
  EXPECT_EQ(batch.ids.shape(), Shape({2, 2}));
  EXPECT_THAT(numbers(batch.ids), ElementsAre(10, 11, 20, 21));
  EXPECT_THAT(numbers(batch.labels), ElementsAre(11, 12, 21, 22));
  EXPECT_FALSE(batch.documents.has_value());
}

TEST(Batch, PadsShortWindowsWithLabelsThatDoNotCount) {
  const std::vector<TokenWindow> windows = {{5, 6}, {1, 2, 3, 4}};
  const Batch batch = batch_of(windows, 3);
  EXPECT_THAT(numbers(batch.ids), ElementsAre(5, 0, 0, 1, 2, 3));
  EXPECT_THAT(numbers(batch.labels), ElementsAre(6, -100, -100, 2, 3, 4));
  EXPECT_EQ(message_of(ErrorKind::argument, [&] { batch_of(windows, 2); }),
            "batch: a window of 4 tokens does not fit rows of 2: it takes 2 to 3");
}

TEST(Batch, ARowByItselfKeepsAllThatBelongsToIt) {
  Batch batch = batch_from(Tens(), 1, 2, 2);
  batch.documents = tensor_of(std::vector<int64_t>{0, 0, 0, 1}, {2, 2});
  batch.positions = tensor_of(std::vector<int64_t>{0, 1, 0, 0}, {2, 2});
  batch.columns.add("weight", tensor_of(std::vector<int64_t>{7, 8}, {2}));
  const Batch one = row_of(batch, 1);
  EXPECT_EQ(one.ids.shape(), Shape({1, 2}));
  EXPECT_EQ(one.ids.values<int64_t>()[0], batch.ids.values<int64_t>()[2]);
  EXPECT_EQ(one.labels.values<int64_t>()[1], batch.labels.values<int64_t>()[3]);
  EXPECT_EQ(one.documents->values<int64_t>()[1], 1);
  EXPECT_EQ(one.positions->values<int64_t>()[1], 0);
  EXPECT_EQ(one.columns.at("weight").values<int64_t>()[0], 8);
}

std::vector<int64_t> step_samples(const BatchShape& shape, int64_t step) {
  std::vector<int64_t> samples;
  for (int64_t rank = 0; rank < shape.ranks; ++rank) {
    BatchShape own = shape;
    own.rank = rank;
    const Loader loader(std::make_shared<Tens>(), 2, own);
    for (int64_t micro = 0; micro < shape.accumulate; ++micro) {
      const std::vector<int64_t> ids = numbers(loader.batch(step, micro).ids);
      for (size_t i = 0; i < ids.size(); i += 2) {
        samples.push_back(ids[i] / 10);
      }
    }
  }
  std::sort(samples.begin(), samples.end());
  return samples;
}

TEST(Loader, GivesAStepTheSameSamplesHoweverItIsDivided) {
  for (const int64_t step : {0, 1, 5}) {
    const std::vector<int64_t> whole = step_samples({8, 1, 1, 0}, step);
    EXPECT_EQ(whole.front(), 8 * step);
    EXPECT_EQ(whole.back(), 8 * step + 7);
    EXPECT_EQ(step_samples({2, 4, 1, 0}, step), whole);
    EXPECT_EQ(step_samples({2, 1, 4, 0}, step), whole);
    EXPECT_EQ(step_samples({1, 4, 2, 0}, step), whole);
  }
}

TEST(Loader, CountsSamplesAndEpochs) {
  const Loader loader(std::make_shared<Tens>(), 2, {3, 2, 1, 0});
  EXPECT_EQ(loader.position(4), 24);
  EXPECT_EQ(loader.epochs(4), 2);
  EXPECT_EQ(loader.sequence(), 2);
}

TEST(Loader, ReadsShuffledTextAsAFunctionOfTheStepAlone) {
  const TemporaryFolder folder;
  std::string text;
  for (int i = 0; i < 400; ++i) {
    text += static_cast<char>(i % 251);
  }
  write_file(folder / "a", text);
  TextConfig config;
  config.files = {(folder / "a").string()};
  const auto loader = [&](uint64_t seed) {
    return Loader(std::make_shared<Shuffled<TokenWindow>>(Text(config).training(8, seed), seed), 8,
                  {4, 1, 1, 0});
  };
  const Loader first = loader(1);
  std::vector<std::vector<int64_t>> forwards;
  for (int64_t step = 0; step < 30; ++step) {
    forwards.push_back(numbers(first.batch(step, 0).ids));
  }
  const Loader again = loader(1);
  for (int64_t step = 29; step >= 0; --step) {
    EXPECT_EQ(numbers(again.batch(step, 0).ids), forwards[static_cast<size_t>(step)]);
  }
  EXPECT_NE(numbers(loader(2).batch(0, 0).ids), forwards[0]);
}

TEST(Loader, RefusesShapesThatAreNone) {
  const auto data = std::make_shared<Tens>();
  EXPECT_THAT(message_of(ErrorKind::argument,
                         [&] {
                           Loader(data, 2, {0, 1, 1, 0});
                         }),
              HasSubstr("counts must be at least 1: rows are 0"));
  EXPECT_THAT(message_of(ErrorKind::argument,
                         [&] {
                           Loader(data, 2, {1, 1, 2, 2});
                         }),
              HasSubstr("the rank must be in [0, 2): got 2"));
  EXPECT_THAT(message_of(ErrorKind::argument,
                         [&] {
                           Loader(data, 2, {1, 2, 1, 0}).batch(0, 2);
                         }),
              HasSubstr("micro-batch is 2 of 2"));
}

void write_tokens(const std::filesystem::path& path, const std::vector<uint16_t>& tokens) {
  std::string bytes;
  for (const uint16_t token : tokens) {
    bytes += static_cast<char>(token & 0xff);
    bytes += static_cast<char>(token >> 8);
  }
  write_file(path, bytes);
}

TEST(TokenFile, GivesRowBOfStepSTheTokensFromItsPlaceInTheFile) {
  const TemporaryFolder folder;
  std::vector<uint16_t> tokens;
  for (int i = 0; i < 103; ++i) {
    tokens.push_back(static_cast<uint16_t>(i * 401));
  }
  write_tokens(folder / "t", tokens);
  const auto file = std::make_shared<TokenFile>(folder / "t");
  EXPECT_EQ(file->size(), 103);
  EXPECT_EQ(file->largest(), 102 * 401);
  const int64_t T = 8;
  const int64_t B = 3;
  const Loader loader(windows_of(file, T), T, {B, 2, 1, 0});
  for (int64_t step = 0; step < 20; ++step) {
    for (int64_t micro = 0; micro < 2; ++micro) {
      const Batch batch = loader.batch(step, micro);
      for (int64_t b = 0; b < B; ++b) {
        const int64_t start = ((step * 2 + micro) * B + b) * T % (103 - T - 1);
        for (int64_t t = 0; t < T; ++t) {
          const auto at = static_cast<size_t>(b * T + t);
          EXPECT_EQ(batch.ids.values<int64_t>()[at], tokens[static_cast<size_t>(start + t)]);
          EXPECT_EQ(batch.labels.values<int64_t>()[at], tokens[static_cast<size_t>(start + t + 1)]);
        }
      }
    }
  }
}

TEST(TokenFile, SaysWhatIsWrongWithAFile) {
  const TemporaryFolder folder;
  write_file(folder / "odd", "abc");
  write_file(folder / "empty", "");
  write_tokens(folder / "short", std::vector<uint16_t>(9));
  EXPECT_THAT(message_of(ErrorKind::format, [&] { TokenFile(folder / "odd"); }),
              HasSubstr("its size is odd, 3 bytes"));
  EXPECT_THAT(message_of(ErrorKind::format, [&] { TokenFile(folder / "empty"); }),
              HasSubstr("the token file is empty"));
  EXPECT_THAT(message_of(ErrorKind::io, [&] { TokenFile(folder / "none"); }),
              HasSubstr("No such file"));
  EXPECT_THAT(message_of(ErrorKind::format,
                         [&] { windows_of(std::make_shared<TokenFile>(folder / "short"), 8); }),
              HasSubstr("shorter than one sequence: 9 tokens, needed are 10 for a sequence length "
                        "of 8"));
}

}  // namespace
}  // namespace ingot::testing
