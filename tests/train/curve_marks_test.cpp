#include "ingot/train/curve_marks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "ingot/base/philox.h"

namespace ingot::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// 2 + 3·e^(−i/60) with noise of deviation 0.02: what a loss usually does.
std::vector<double> falling(size_t count, double speed = 60) {
  const Philox random({5, 0, site_named("curve")});
  std::vector<double> out;
  for (size_t i = 0; i < count; ++i) {
    out.push_back(2 + 3 * std::exp(-static_cast<double>(i) / speed) + 0.02 * random.normal(i));
  }
  return out;
}

TEST(CurveMarks, ACurveThatFallsHasNone) {
  const auto losses = falling(200, 100);
  const CurveMarks marks = marks_of(losses);
  EXPECT_THAT(marks.spikes, IsEmpty());
  EXPECT_THAT(marks.plateaus, IsEmpty());
  EXPECT_EQ(marks.diverges, losses.size());
}

TEST(CurveMarks, FindsPlantedSpikesOnceEach) {
  auto losses = falling(300);
  losses[120] += 1;
  losses[200] += 0.6;
  losses[201] += 0.4;
  EXPECT_THAT(marks_of(losses).spikes, ElementsAre(120, 200));
}

TEST(CurveMarks, FindsAPlateauBetweenTwoFalls) {
  std::vector<double> losses;
  for (size_t i = 0; i < 400; ++i) {
    const double x = static_cast<double>(i);
    losses.push_back(i < 100 ? 6 - x / 50 : i < 250 ? 4 : 4 - (x - 250) / 100);
  }
  const CurveMarks marks = marks_of(losses, 0.5);
  ASSERT_EQ(marks.plateaus.size(), 1u);
  EXPECT_NEAR(static_cast<double>(marks.plateaus[0].begin), 100, 5);
  EXPECT_NEAR(static_cast<double>(marks.plateaus[0].end), 250, 10);
  EXPECT_EQ(marks.diverges, losses.size());
}

TEST(CurveMarks, FindsWhereACurveDiverges) {
  auto losses = falling(200);
  for (size_t i = 150; i < 200; ++i) {
    losses[i] += 0.1 * static_cast<double>(i - 149);
  }
  EXPECT_NEAR(static_cast<double>(marks_of(losses).diverges), 150, 10);
  losses = falling(100);
  losses.resize(120, std::numeric_limits<double>::quiet_NaN());
  EXPECT_EQ(marks_of(losses).diverges, 100u);
  EXPECT_EQ(marks_of({}).diverges, 0u);
}

TEST(CurveMarks, TheRunningMeanIsThatOfItsValues) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const auto mean = smoothed(std::vector<double>{1, 3, nan, 5}, 0.5);
  EXPECT_DOUBLE_EQ(mean[0], 1);
  EXPECT_DOUBLE_EQ(mean[1], (1 * 0.25 + 3 * 0.5) / 0.75);
  EXPECT_DOUBLE_EQ(mean[2], mean[1]);
  EXPECT_DOUBLE_EQ(mean[3], (1 * 0.125 + 3 * 0.25 + 5 * 0.5) / 0.875);
  EXPECT_THAT(smoothed(std::vector<double>{4, 2}, 0), ElementsAre(4, 2));
}

}  // namespace
}  // namespace ingot::testing
