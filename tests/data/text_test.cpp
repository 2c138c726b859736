#include "ingot/data/text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <map>
#include <set>

#include "ingot/base/hash.h"
#include "ingot/data/shuffle.h"
#include "tests/support/message.h"
#include "tests/support/paths.h"

namespace ingot::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

// `count` bytes in which each value tells its place, as far as a byte can.
std::string counting(int64_t count, int64_t start = 0) {
  std::string text;
  for (int64_t i = start; i < start + count; ++i) {
    text += static_cast<char>(i % 256);
  }
  return text;
}

TextConfig config_of(const std::vector<std::filesystem::path>& files, double fraction) {
  TextConfig config;
  for (const auto& file : files) {
    config.files.push_back(file.string());
  }
  config.validation_fraction = fraction;
  return config;
}

TEST(Text, HoldsOutTheLastShareOfEachFile) {
  const TemporaryFolder folder;
  write_file(folder / "a", counting(100));
  write_file(folder / "b", counting(50, 100));
  const Text text(config_of({folder / "a", folder / "b"}, 0.1));
  EXPECT_EQ(text.training_bytes(), 90 + 45);
  EXPECT_EQ(text.validation_targets(), 10 + 5);
}

TEST(Text, PredictsEachValidationByteExactlyOnce) {
  const TemporaryFolder folder;
  write_file(folder / "a", counting(100));
  write_file(folder / "b", counting(57, 100));
  const Text text(config_of({folder / "a", folder / "b"}, 0.3));
  for (const int64_t T : {1, 4, 7, 15, 30, 64}) {
    std::multiset<int64_t> targets;
    const auto windows = text.validation(T);
    for (int64_t i = 0; i < windows->size(); ++i) {
      const TokenWindow window = windows->get(i);
      EXPECT_LE(static_cast<int64_t>(window.size()), T + 1);
      for (size_t t = 1; t < window.size(); ++t) {
        EXPECT_EQ(window[t], window[t - 1] + 1);  // what precedes it in the file
        targets.insert(window[t]);
      }
    }
    std::multiset<int64_t> wanted;
    for (int64_t byte = 70; byte < 100; ++byte) {
      wanted.insert(byte);
    }
    for (int64_t byte = 140; byte < 157; ++byte) {
      wanted.insert(byte);
    }
    EXPECT_EQ(targets, wanted) << "T = " << T;
    EXPECT_EQ(static_cast<int64_t>(targets.size()), text.validation_targets());
    EXPECT_EQ(windows->get(0), windows->get(windows->size()));
  }
}

TEST(Text, TrainsOnAllOfItsFilesWhereValidationFilesAreGiven) {
  const TemporaryFolder folder;
  write_file(folder / "a", counting(100));
  write_file(folder / "held", counting(20, 200));
  TextConfig config = config_of({folder / "a"}, 0.5);
  config.validation_files = {(folder / "held").string()};
  const Text text(config);
  EXPECT_EQ(text.training_bytes(), 100);
  EXPECT_EQ(text.validation_targets(), 19);
  EXPECT_THAT(text.validation(8)->get(2), ElementsAre(216, 217, 218, 219));
}

TEST(Text, NeverTrainsOnAHeldOutByte) {
  const TemporaryFolder folder;
  write_file(folder / "a", counting(200));
  const auto windows = Text(config_of({folder / "a"}, 0.25)).training(16, 3);
  for (int64_t i = 0; i < 20 * windows->size(); ++i) {
    for (const int64_t byte : windows->get(i)) {
      EXPECT_LT(byte, 150);
    }
  }
}

TEST(Text, CutsTheStreamIntoWindowsThatOverlapByOneByte) {
  const TemporaryFolder folder;
  write_file(folder / "a", counting(100));
  write_file(folder / "b", counting(100, 100));
  const int64_t T = 16;
  const auto windows = Text(config_of({folder / "a", folder / "b"}, 0)).training(T, 3);
  EXPECT_EQ(windows->size(), (200 - T) / T);
  for (int64_t epoch = 0; epoch < 5; ++epoch) {
    std::set<int64_t> targets;
    for (int64_t i = 0; i < windows->size(); ++i) {
      const TokenWindow window = windows->get(epoch * windows->size() + i);
      ASSERT_EQ(static_cast<int64_t>(window.size()), T + 1);
      for (size_t t = 1; t < window.size(); ++t) {
        EXPECT_EQ(window[t], window[t - 1] + 1);  // across the border of the files too
        EXPECT_TRUE(targets.insert(window[t]).second) << "a target twice in one epoch";
      }
    }
    EXPECT_GT(static_cast<int64_t>(targets.size()), 200 - 2 * T);
  }
}

TEST(Text, MovesTheWindowsFromEpochToEpochByTheSeed) {
  const TemporaryFolder folder;
  write_file(folder / "a", counting(200));
  const Text text(config_of({folder / "a"}, 0));
  const auto windows = text.training(16, 3);
  const auto same = text.training(16, 3);
  const auto other = text.training(16, 4);
  std::set<int64_t> starts;
  int64_t different = 0;
  for (int64_t epoch = 0; epoch < 40; ++epoch) {
    const int64_t first = epoch * windows->size();
    starts.insert(windows->get(first)[0]);
    EXPECT_EQ(windows->get(first + 3), same->get(first + 3));
    different += windows->get(first) != other->get(first) ? 1 : 0;
  }
  EXPECT_GE(starts.size(), 12);  // of 16 possible
  EXPECT_EQ(*starts.begin(), 0);
  EXPECT_EQ(*starts.rbegin(), 15);
  EXPECT_GT(different, 20);
}

TEST(Text, TrainsOnATextOfExactlyOneSequence) {
  const TemporaryFolder folder;
  write_file(folder / "a", counting(17));
  const auto windows = Text(config_of({folder / "a"}, 0)).training(16, 3);
  EXPECT_EQ(windows->size(), 1);
  for (int64_t epoch = 0; epoch < 5; ++epoch) {
    EXPECT_EQ(windows->get(epoch).front(), 0);
    EXPECT_EQ(windows->get(epoch).back(), 16);
  }
}

TEST(Text, TakesAnyBytes) {
  const TemporaryFolder folder;
  const std::string bytes("\0\xff\xc3(\0\n\x80", 7);
  write_file(folder / "a", bytes);
  EXPECT_THAT(Text(config_of({folder / "a"}, 0)).training(6, 0)->get(0),
              ElementsAre(0, 255, 195, 40, 0, 10, 128));
}

TEST(Text, HashesSizesAndBytesOfAllFiles) {
  const TemporaryFolder folder;
  write_file(folder / "a", "one two");
  write_file(folder / "b", " three");
  write_file(folder / "c", "one");
  write_file(folder / "d", " two three");
  const auto hash = [&](const char* first, const char* second) {
    return Text(config_of({folder / first, folder / second}, 0)).hash();
  };
  EXPECT_EQ(hash("a", "b").size(), 32);
  EXPECT_EQ(hash("a", "b"), hash("a", "b"));
  EXPECT_NE(hash("a", "b"), hash("b", "a"));
  EXPECT_NE(hash("a", "b"), hash("c", "d"));  // the same bytes, cut elsewhere
}

TEST(Text, OutlivesNothingItNeeds) {
  const TemporaryFolder folder;
  write_file(folder / "a", counting(64));
  std::shared_ptr<const Dataset<TokenWindow>> windows;
  {
    const Text text(config_of({folder / "a"}, 0.25));
    windows = text.training(8, 1);
  }
  EXPECT_EQ(windows->get(0).size(), 9);
}

TEST(Text, SaysWhatIsWrongWithAFile) {
  const TemporaryFolder folder;
  write_file(folder / "empty", "");
  write_file(folder / "short", counting(40));
  const auto refused = [&](ErrorKind kind, const std::filesystem::path& path) {
    return message_of(kind, [&] { Text(config_of({path}, 0.05)).training(64, 0); });
  };
  EXPECT_THAT(refused(ErrorKind::io, folder / "missing"),
              ::testing::AllOf(HasSubstr("missing"), HasSubstr("No such file")));
  EXPECT_THAT(refused(ErrorKind::io, folder.path()),
              ::testing::AllOf(StartsWith(folder.path().string()), HasSubstr("Is a directory")));
  EXPECT_EQ(refused(ErrorKind::format, folder / "empty"),
            (folder / "empty").string() + ": the file is empty; give a file with text in it");
  EXPECT_EQ(refused(ErrorKind::format, folder / "short"),
            (folder / "short").string() +
                ": the text is shorter than one sequence: 38 bytes to train on, needed are 65 for "
                "a sequence length of 64; give more text or shorten the sequence");
  EXPECT_EQ(message_of(ErrorKind::config, [] { Text(TextConfig{}); }),
            "data: no text files are given; set files");
}

TEST(Text, SaysThatAFileMayNotBeRead) {
  if (::geteuid() == 0) {
    GTEST_SKIP() << "the superuser may read every file";
  }
  const TemporaryFolder folder;
  write_file(folder / "secret", "text");
  std::filesystem::permissions(folder / "secret", std::filesystem::perms::none);
  EXPECT_THAT(message_of(ErrorKind::io, [&] { Text(config_of({folder / "secret"}, 0)); }),
              HasSubstr("Permission denied"));
}

}  // namespace
}  // namespace ingot::testing
