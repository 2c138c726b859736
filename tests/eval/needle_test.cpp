#include "ingot/eval/needle.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "tests/support/message.h"

namespace ingot::testing {
namespace {

using ::testing::HasSubstr;

int64_t bytes(std::string_view text) { return static_cast<int64_t>(text.size()); }

TEST(Needle, FillsTheLengthAndStandsAtItsDepth) {
  for (const int64_t length : {200, 1000, 5000}) {
    for (const double depth : {0.0, 0.3, 0.5, 1.0}) {
      const Needle needle = make_needle({.length = length, .depth = depth}, 7, bytes);
      EXPECT_LE(bytes(needle.prompt), length);
      EXPECT_GT(bytes(needle.prompt), length - 40);  // no sentence more fits
      const std::string sentence = "The number of " + needle.key + " is " + needle.answer + ". ";
      EXPECT_EQ(needle.prompt.find(sentence), static_cast<size_t>(needle.at));
      EXPECT_EQ(needle.prompt.find(needle.answer), needle.prompt.rfind(needle.answer));
      EXPECT_TRUE(needle.prompt.ends_with("The number of " + needle.key + " is"));
      const double filled = static_cast<double>(bytes(needle.prompt)) -
                            static_cast<double>(2 * sentence.size() - needle.answer.size());
      EXPECT_NEAR(static_cast<double>(needle.at) / std::max(filled, 1.0), depth,
                  0.02 + 60.0 / static_cast<double>(length));
    }
  }
}

TEST(Needle, IsMeasuredInWhateverTokensAre) {
  const auto words = [](std::string_view text) {
    return static_cast<int64_t>(std::ranges::count(text, ' ')) + 1;
  };
  const Needle needle = make_needle({.length = 300}, 1, words);
  EXPECT_LE(words(needle.prompt), 300);
  EXPECT_GT(words(needle.prompt), 290);
}

TEST(Needle, DependsOnItsSeed) {
  const NeedleConfig config{.length = 400, .digits = 7, .distractors = 3};
  EXPECT_EQ(make_needle(config, 5, bytes).prompt, make_needle(config, 5, bytes).prompt);
  std::set<std::string> answers;
  for (uint64_t seed = 0; seed < 50; ++seed) {
    const Needle one = make_needle(config, seed, bytes);
    EXPECT_EQ(one.answer.size(), 7U);
    answers.insert(one.answer);
    size_t told = 0;
    for (size_t at = one.prompt.find("The number of"); at != std::string::npos;
         at = one.prompt.find("The number of", at + 1)) {
      ++told;
    }
    EXPECT_EQ(told, 5U);  // three others, the needle, the question
  }
  EXPECT_GT(answers.size(), 45U);
}

TEST(Needle, IsFoundWhereTheTextBeginsWithItAndWithNothingMore) {
  const Needle needle{"", "12345", "", 0};
  EXPECT_TRUE(found_needle(needle, "12345"));
  EXPECT_TRUE(found_needle(needle, " 12345. The sky"));
  EXPECT_FALSE(found_needle(needle, "123456"));
  EXPECT_FALSE(found_needle(needle, "1234"));
  EXPECT_FALSE(found_needle(needle, "it is 12345"));
  EXPECT_FALSE(found_needle(needle, ""));
}

// A reader that looks back so many bytes finds what stands there and nothing else.
TEST(Needle, TheTableShowsHowFarAReaderSees) {
  const auto sees = [](size_t reach) {
    return [reach](const std::vector<Needle>& needles) {
      std::vector<std::string> out;
      for (const Needle& needle : needles) {
        const std::string& text = needle.prompt;
        const std::string seen = text.substr(text.size() - std::min(reach, text.size()));
        const bool there = seen.find(" is " + needle.answer) != std::string::npos;
        out.push_back(there ? " " + needle.answer + ".\n" : " 0");
      }
      return out;
    };
  };
  const NeedleGrid grid{{500, 2000}, {0, 0.5, 1}, 3};
  const auto cells = search_needles(grid, {}, 3, bytes, sees(600));
  ASSERT_EQ(cells.size(), 6U);
  for (const NeedleCell& cell : cells) {
    EXPECT_EQ(cell.accuracy(), cell.length == 500 || cell.depth == 1 ? 1 : 0);
  }
  EXPECT_EQ(needle_table(cells),
            "length     0 %    50 %   100 %\n"
            "   500   100.0   100.0   100.0\n"
            "  2000     0.0     0.0   100.0\n");
}

TEST(Needle, SaysWhatItCannotMake) {
  EXPECT_THAT(message_of(ErrorKind::config, [] { make_needle({.length = 20}, 1, bytes); }),
              HasSubstr("no room for the needle and the question: length is 20, they take "));
  EXPECT_THAT(message_of(ErrorKind::config, [] { make_needle({.depth = 1.5}, 1, bytes); }),
              HasSubstr("depth must be within 0 and 1: got 1.5"));
  EXPECT_THAT(message_of(ErrorKind::argument,
                         [] {
                           search_needles({{200}}, {}, 1, bytes,
                                          [](const auto&) { return std::vector<std::string>(); });
                         }),
              HasSubstr("4 prompts were asked, 0 were answered"));
}

}  // namespace
}  // namespace ingot::testing
