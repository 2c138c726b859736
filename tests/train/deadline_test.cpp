#include "ingot/train/deadline.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <ctime>

#include "tests/support/message.h"

namespace ingot::testing {
namespace {

double local(int year, int month, int day, int hour, int minute, int second) {
  std::tm broken{};
  broken.tm_year = year - 1900;
  broken.tm_mon = month - 1;
  broken.tm_mday = day;
  broken.tm_hour = hour;
  broken.tm_min = minute;
  broken.tm_sec = second;
  broken.tm_isdst = -1;
  return static_cast<double>(std::mktime(&broken));
}

TEST(DeadlineOf, ReadsClocksDatesAndTheEndOfAJob) {
  const double now = local(2026, 11, 30, 22, 0, 0);
  EXPECT_EQ(deadline_of("22:30", now), local(2026, 11, 30, 22, 30, 0));
  EXPECT_EQ(deadline_of("06:00", now), local(2026, 12, 1, 6, 0, 0));
  EXPECT_EQ(deadline_of("6:00", now), local(2026, 12, 1, 6, 0, 0));
  EXPECT_EQ(deadline_of("22:00:30", now), local(2026, 11, 30, 22, 0, 30));
  EXPECT_EQ(deadline_of("2028-02-29 06:00", now), local(2028, 2, 29, 6, 0, 0));
  EXPECT_EQ(deadline_of("2026-12-24 18:05", now), local(2026, 12, 24, 18, 5, 0));
  EXPECT_EQ(deadline_of("2026-12-24T18:05:06", now), local(2026, 12, 24, 18, 5, 6));
  ::setenv("SLURM_JOB_END_TIME", "1796160000", 1);
  EXPECT_EQ(deadline_of("slurm", now), 1796160000);
  ::setenv("SLURM_JOB_END_TIME", "soon", 1);
  EXPECT_EQ(message_of(ErrorKind::config, [&] { deadline_of("slurm", now); }),
            "train.until: SLURM_JOB_END_TIME is no time in seconds: got \"soon\"");
  ::unsetenv("SLURM_JOB_END_TIME");
}

TEST(DeadlineOf, RefusesWhatIsNoTime) {
  const double now = local(2026, 11, 30, 22, 0, 0);
  const std::string how = "; write \"06:00\", \"2026-12-01 06:00\" or \"slurm\"";
  for (const char* text : {"", "six", "12", "6 am", "12:00 tomorrow", "-1:00", "06:00 5", "6:0",
                           "06:00:", "2026-12-24", "2026-12-24 ", "2026-12-24 06:00 5",
                           "26-12-24 06:00", "2026/12/24 06:00", "2026-12-24x06:00"}) {
    EXPECT_EQ(message_of(ErrorKind::config, [&] { deadline_of(text, now); }),
              concat("train.until: not understood: got \"", text, "\"", how));
  }
  for (const char* text : {"25:00", "24:00", "12:60", "12:00:60", "2027-02-29 06:00",
                           "2027-02-31 06:00", "2027-04-31 06:00", "2027-00-01 06:00",
                           "2027-13-01 06:00", "2027-01-00 06:00", "2027-01-01 24:00"}) {
    EXPECT_EQ(message_of(ErrorKind::config, [&] { deadline_of(text, now); }),
              concat("train.until: there is no such time: got \"", text, "\"", how));
  }
  EXPECT_EQ(message_of(ErrorKind::config, [&] { deadline_of("2026-11-30 21:00", now); }),
            "train.until: that time is over: got \"2026-11-30 21:00\"" + how);
  EXPECT_EQ(message_of(ErrorKind::config, [&] { deadline_of("slurm", now); }),
            "train.until: there is no SLURM_JOB_END_TIME, so this is no Slurm job with an end: got "
            "\"slurm\"" +
                how);
}

// Steps of two seconds, and every tenth one of seven, for it saves and measures; the run begins at
// 1000, at step 40, and must be over at 2000.
TEST(Deadline, BeginsTheDecaySoThatTheRunEndsJustInTime) {
  constexpr int64_t decay = 50;
  Deadline deadline(2000, 1000, 40);
  double now = 1000;
  int64_t step = 40;
  while (!deadline.due(step, now, decay)) {
    ++step;
    now += step % 10 == 0 ? 7 : 2;
    ASSERT_LT(now, 2000);
  }
  const double end = now + 45 * 2 + 5 * 7;
  EXPECT_LE(end, 2000);
  EXPECT_GE(end, 2000 - 7 - 0.02 * 1000 - 7);  // what is spared, and one step
}

TEST(Deadline, ThatIsOverBeginsAtOnce) {
  Deadline deadline(500, 1000, 3);
  EXPECT_TRUE(deadline.due(3, 1000, 5));
}

TEST(Deadline, DecaysAreAsLongAsTheScheduleSays) {
  EXPECT_EQ(decay_steps({.decay = 12}, 1000), 12);
  for (const double share : {0.1, 0.25, 0.5}) {
    for (const int64_t step : {9, 90, 1234}) {
      const WsdSchedule schedule{.decay_fraction = share};
      const int64_t decay = decay_steps(schedule, step);
      // It begins with the step after `step`, or the one before.
      EXPECT_NEAR(static_cast<double>(schedule.decay_start(step + decay)),
                  static_cast<double>(step), 1);
    }
  }
  EXPECT_EQ(decay_steps({}, 0), 1);
}

}  // namespace
}  // namespace ingot::testing
