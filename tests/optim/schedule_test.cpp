#include "ingot/optim/schedule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "tests/support/message.h"

namespace ingot::testing {
namespace {

using ::testing::HasSubstr;

TEST(Warmup, ReachesThePeakInExactlyTheGivenUpdatesAndHandsOverContinuously) {
  const double peak = 3e-4;
  for (const std::string& name : schedule_names()) {
    Schedule schedule = *schedule_named(name);
    const bool has_warmup = std::visit(
        [](auto& any) {
          if constexpr (requires { any.warmup; }) {
            any.warmup = 8;
            return true;
          }
          return false;
        },
        schedule);
    if (!has_warmup) {
      continue;
    }
    for (int64_t t = 0; t < 8; ++t) {
      EXPECT_NEAR(learning_rate(schedule, peak, t, 100), peak * static_cast<double>(t + 1) / 8,
                  1e-12)
          << name;
    }
    EXPECT_NEAR(learning_rate(schedule, peak, 8, 100), peak, 1e-12) << name;
  }
}

TEST(CosineSchedule, FollowsItsClosedFormWithTheMidpointHalfWay) {
  const double peak = 6e-4;
  const CosineSchedule schedule{.floor = 0.1};
  const double low = 0.1 * peak;
  for (int64_t t = 0; t <= 200; ++t) {
    const double closed =
        low + (peak - low) / 2 * (1 + std::cos(std::numbers::pi * static_cast<double>(t) / 200));
    EXPECT_NEAR(learning_rate(schedule, peak, t, 200), closed, 1e-12);
  }
  EXPECT_DOUBLE_EQ(learning_rate(schedule, peak, 100, 200), (peak + low) / 2);
  EXPECT_DOUBLE_EQ(learning_rate(schedule, peak, 200, 200), low);
  EXPECT_DOUBLE_EQ(learning_rate(schedule, peak, 5000, 200), low);
}

TEST(RestartsSchedule, ReturnsToThePeakAtEachStart) {
  const RestartsSchedule growing{.first_period = 10, .period_factor = 2};
  for (const int64_t start : {0, 10, 30, 70}) {
    EXPECT_EQ(growing.factor(start, 100), 1) << start;
    EXPECT_LT(growing.factor(start + 9, 100), 1) << start;
  }
  const RestartsSchedule equal{.warmup = 20, .cycles = 4};
  for (const int64_t start : {20, 40, 60, 80}) {
    EXPECT_NEAR(equal.factor(start, 100), 1, 1e-12) << start;
  }
  EXPECT_EQ(equal.factor(100, 100), 0);
}

TEST(WsdSchedule, IsFlatUntilTheDecayAndEndsAtTheFloor) {
  const WsdSchedule schedule{.warmup = 10, .decay_fraction = 0.2, .floor = 0.05};
  EXPECT_EQ(schedule.decay_start(100), 80);
  for (int64_t t = 9; t <= 80; ++t) {
    EXPECT_EQ(schedule.factor(t, 100), 1) << t;
  }
  EXPECT_NEAR(schedule.factor(90, 100), (1 + 0.05) / 2, 1e-12);
  EXPECT_NEAR(schedule.factor(100, 100), 0.05, 1e-12);
}

TEST(StepsSchedule, StepsAtItsMilestones) {
  const StepsSchedule schedule{.gamma = 0.5, .milestones = {10, 20}};
  EXPECT_EQ(schedule.factor(9, 100), 1);
  EXPECT_EQ(schedule.factor(10, 100), 0.5);
  EXPECT_EQ(schedule.factor(20, 100), 0.25);
}

TEST(Schedules, ArePureFunctionsOfTheUpdateSoResumeContinuesTheCurve) {
  for (const std::string& name : schedule_names()) {
    const Schedule schedule = *schedule_named(name);
    for (int64_t t = 0; t < 50; ++t) {
      const double rate = learning_rate(schedule, 1e-3, t, 50);
      EXPECT_TRUE(std::isfinite(rate) && rate >= 0 && rate <= 1e-3) << name << " at " << t;
      EXPECT_EQ(rate, learning_rate(*schedule_named(name), 1e-3, t, 50));
    }
  }
}

TEST(Schedules, ThatDoNotFitTheRunAreRefused) {
  EXPECT_EQ(message_of(ErrorKind::config, [] { check_schedule(CosineSchedule{.warmup = 20}, 10); }),
            "schedule: the warm-up is longer than the run: warmup is 20, the run has 10; "
            "shorten it or train longer");
  EXPECT_THAT(message_of(ErrorKind::config,
                         [] { check_schedule(WsdSchedule{.warmup = 5, .decay = 6}, 10); }),
              HasSubstr("warm-up and decay are longer than the run"));
  check_schedule(WsdSchedule{.warmup = 5, .decay = 5}, 10);
}

TEST(Schedules, DrawTheirCurve) {
  // Updates 0 … 4 at 1, 0.8, 0.6, 0.4, 0.2 of the peak, in rows of a quarter of it.
  EXPECT_EQ(drawn(LinearSchedule{}, 0.5, 5, 5, 5), "|*  0.5\n| *\n|  **\n|    *\n|\n");
}

TEST(PiecewiseSchedule, IsLinearBetweenItsPointsAndFlatOutside) {
  const PiecewiseSchedule schedule{.at = {10, 20, 40}, .factors = {0, 1, 0.5}};
  EXPECT_EQ(learning_rate(schedule, 2, 0, 100), 0);
  EXPECT_EQ(learning_rate(schedule, 2, 10, 100), 0);
  EXPECT_DOUBLE_EQ(learning_rate(schedule, 2, 15, 100), 1);
  EXPECT_DOUBLE_EQ(learning_rate(schedule, 2, 20, 100), 2);
  EXPECT_DOUBLE_EQ(learning_rate(schedule, 2, 30, 100), 1.5);
  EXPECT_EQ(learning_rate(schedule, 2, 99, 100), 1);
  EXPECT_EQ(message_of(ErrorKind::config,
                       [] {
                         check_schedule(PiecewiseSchedule{.at = {0, 5}, .factors = {1}}, 9);
                       }),
            "schedule: piecewise needs a factor for each point: at has 2 numbers, factors 1");
  EXPECT_EQ(message_of(ErrorKind::config,
                       [] {
                         check_schedule(PiecewiseSchedule{.at = {5, 5}, .factors = {1, 0}}, 9);
                       }),
            "schedule: the numbers of piecewise's at must rise");
}

}  // namespace
}  // namespace ingot::testing
