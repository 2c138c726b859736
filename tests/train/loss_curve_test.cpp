#include "ingot/train/loss_curve.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <sstream>

namespace ingot::testing {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

std::vector<LoggedStep> falling(int64_t count) {
  std::vector<LoggedStep> out;
  for (int64_t i = 0; i < count; ++i) {
    out.push_back({i + 1, 5.0 - 3.0 * static_cast<double>(i) / static_cast<double>(count - 1)});
  }
  return out;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> out;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) {
    out.push_back(line);
  }
  return out;
}

// Braille characters of a line as their dots' bits.
std::vector<int> cells(const std::string& line) {
  std::vector<int> out;
  for (size_t i = line.find("┤") + std::string("┤").size(); i + 2 < line.size(); i += 3) {
    out.push_back((static_cast<uint8_t>(line[i + 1]) - 0xa0) * 64 +
                  (static_cast<uint8_t>(line[i + 2]) - 0x80));
  }
  return out;
}

TEST(LossCurve, NamesItsLargestAndSmallestLossAndItsSteps) {
  const std::vector<std::string> lines = lines_of(loss_curve(falling(1000), 40, 6));
  ASSERT_EQ(lines.size(), 8u);
  EXPECT_THAT(lines[0], StartsWith("  4.9820"));  // the mean of steps 1 to 13
  EXPECT_THAT(lines[5], StartsWith("  2.00"));
  EXPECT_THAT(lines[7], HasSubstr(" 1 "));
  EXPECT_THAT(lines[7], EndsWith("1000"));
  EXPECT_EQ(lines[7].size(), 10u + 40u);
}

TEST(LossCurve, FallsFromTheUpperLeftToTheLowerRight) {
  const std::vector<std::string> lines = lines_of(loss_curve(falling(400), 20, 4));
  const std::vector<int> top = cells(lines[0]);
  const std::vector<int> bottom = cells(lines[3]);
  ASSERT_EQ(top.size(), 20u);
  EXPECT_NE(top.front(), 0);
  EXPECT_EQ(top.back(), 0);
  EXPECT_EQ(bottom.front(), 0);
  EXPECT_NE(bottom.back(), 0);
}

TEST(LossCurve, DrawsOneDotPerHalfColumnAtMost) {
  int dots = 0;
  for (const std::string& line : lines_of(loss_curve(falling(400), 20, 4))) {
    if (line.find("┤") != std::string::npos) {
      for (const int cell : cells(line)) {
        dots += __builtin_popcount(static_cast<unsigned>(cell));
      }
    }
  }
  EXPECT_EQ(dots, 40);
}

TEST(LossCurve, IsEmptyWhereThereIsNothingToDraw) {
  EXPECT_EQ(loss_curve({}), "");
  EXPECT_EQ(loss_curve({{1, 2.0}}), "");
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(loss_curve({{1, nan}, {2, nan}}), "");
}

TEST(LossCurve, LeavesOutLossesThatAreNotFinite) {
  std::vector<LoggedStep> steps = falling(10);
  steps[4].loss = std::numeric_limits<double>::infinity();
  steps[5].loss = std::numeric_limits<double>::quiet_NaN();
  const std::string drawn = loss_curve(steps);
  EXPECT_THAT(drawn, StartsWith("  5.0000"));
  EXPECT_THAT(drawn, ::testing::Not(HasSubstr("inf")));
  EXPECT_THAT(drawn, ::testing::Not(HasSubstr("nan")));
}

TEST(LossCurve, DrawsAConstantLossAsALine) {
  const std::vector<std::string> lines =
      lines_of(loss_curve({{5, 1.5}, {6, 1.5}, {7, 1.5}}, 20, 4));
  EXPECT_THAT(lines[0], StartsWith("  1.5000"));
  EXPECT_THAT(lines[3], StartsWith("  1.5000"));
}

}  // namespace
}  // namespace ingot::testing
