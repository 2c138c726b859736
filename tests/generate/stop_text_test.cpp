#include "ingot/generate/stop_text.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "ingot/base/philox.h"

namespace ingot::testing {
namespace {

TEST(StopText, HoldsBackWhatMayBecomeAStopString) {
  StopText text({"END"});
  EXPECT_EQ(text.add("abE"), "ab");
  EXPECT_EQ(text.add("N"), "");
  EXPECT_EQ(text.add("Ecd"), "ENEcd");
  EXPECT_EQ(text.add("E"), "");
  EXPECT_EQ(text.finish(), "E");
  EXPECT_EQ(text.found(), "");
}

TEST(StopText, EndsBeforeTheFirstStopStringAndGivesNothingAfterIt) {
  StopText text({"cd", "bc"});
  EXPECT_EQ(text.add("abcd"), "a");
  EXPECT_EQ(text.found(), "bc");
  EXPECT_EQ(text.add("more"), "");
  EXPECT_EQ(text.finish(), "");
}

TEST(StopText, WithoutStopStringsPassesEverythingOn) {
  StopText none;
  EXPECT_EQ(none.add("abc"), "abc");
  StopText empty({""});
  EXPECT_EQ(empty.add("abc"), "abc");
  EXPECT_EQ(empty.found(), "");
}

// However a text is cut, the same comes out as from searching all of it.
TEST(StopText, GivesTheSameHoweverTheTextIsCut) {
  const std::vector<std::string> stops = {"aab", "abab", "ba b"};
  for (uint64_t round = 0; round < 300; ++round) {
    const Philox random({round, 0, 0});
    std::string whole;
    for (uint64_t i = 0; i < 40; ++i) {
      whole += "ab "[random.word(i) % 3];
    }
    size_t first = std::string::npos;
    for (const std::string& stop : stops) {
      first = std::min(first, whole.find(stop));
    }
    StopText text(stops);
    std::string got;
    for (size_t at = 0; at < whole.size();) {
      const size_t size = 1 + random.word(100 + at) % 5;
      got += text.add(std::string_view(whole).substr(at, size));
      at += size;
    }
    got += text.finish();
    EXPECT_EQ(got, whole.substr(0, first)) << whole;
    EXPECT_EQ(text.found().empty(), first == std::string::npos) << whole;
  }
}

}  // namespace
}  // namespace ingot::testing
