#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ingot/base/log.h"
#include "ingot/base/progress.h"
#include "ingot/base/text_size.h"

namespace ingot {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

// A terminal (or a file) in memory, and a clock that stands still until told.
struct Screen {
  std::string text;
  double now = 100;
  ProgressStyle style(bool terminal) {
    return {.write = [this](std::string_view part) { text += part; },
            .seconds = [this] { return now; },
            .terminal = terminal,
            .width = 80,
            .interval_seconds = 10};
  }
};

TEST(Progress, SaysNothingAboutTasksShorterThanTwoSeconds) {
  Screen screen;
  {
    Progress progress("read", 10, "lines", screen.style(true));
    for (int i = 0; i < 10; ++i) {
      screen.now += 0.19;
      progress.advance();
    }
  }
  EXPECT_EQ(screen.text, "");
}

TEST(Progress, DrawsABarWithRateAndTimeLeftOnATerminal) {
  Screen screen;
  Progress progress("read", 1000, "lines", screen.style(true));
  progress.note("loss 2.3");
  screen.now += 10;
  progress.set(500);
  EXPECT_EQ(screen.text,
            "\r\033[Kread ██████████           50%  500/1.00K lines  50/s  10 s left  loss 2.3");
  screen.now += 10;
  progress.set(1000);
  screen.text.clear();
  progress.finish();
  EXPECT_THAT(screen.text, HasSubstr("100%  1.00K/1.00K lines  50/s  20 s  loss 2.3"));
  EXPECT_THAT(screen.text, EndsWith("\n"));
  screen.text.clear();
  progress.finish();
  EXPECT_EQ(screen.text, "");
}

TEST(Progress, RedrawsAtMostTenTimesASecond) {
  Screen screen;
  Progress progress("read", 100000, "lines", screen.style(true));
  screen.now += 2;
  for (int i = 0; i < 1000; ++i) {
    screen.now += 0.001;
    progress.advance();
  }
  EXPECT_LE(std::count(screen.text.begin(), screen.text.end(), '\r'), 11);
  EXPECT_GE(std::count(screen.text.begin(), screen.text.end(), '\r'), 9);
}

TEST(Progress, PrintsAPlainLinePerIntervalElsewhere) {
  Screen screen;
  Progress progress("read", 100, "lines", screen.style(false));
  for (int second = 1; second <= 25; ++second) {
    screen.now += 1;
    progress.advance();
  }
  EXPECT_EQ(screen.text,
            "read 2%  2/100 lines  1/s  1 min 38 s left\n"
            "read 12%  12/100 lines  1/s  1 min 28 s left\n"
            "read 22%  22/100 lines  1/s  1 min 18 s left\n");
}

TEST(Progress, CountsTheRateFromWhereAResumedTaskBegan) {
  Screen screen;
  Progress progress("train", 200, "steps", screen.style(false));
  progress.start_at(100);
  screen.now += 10;
  progress.set(150);
  EXPECT_EQ(screen.text, "train 75%  150/200 steps  5/s  10 s left\n");
}

TEST(Progress, ShowsNoEndWhereTheTotalIsUnknown) {
  Screen screen;
  Progress progress("read", 0, "bytes", screen.style(false));
  screen.now += 4;
  progress.set(4000);
  EXPECT_EQ(screen.text, "read 4.00K bytes  1.00K/s  4.0 s\n");
}

TEST(Progress, FitsTheLineIntoTheTerminal) {
  Screen screen;
  ProgressStyle style = screen.style(true);
  style.width = 10;
  Progress progress("read", 100, "lines", style);
  screen.now += 4;
  progress.set(100);
  EXPECT_EQ(screen.text, "\r\033[Kread ████");
}

TEST(TextSize, WritesBytesWithThreeDigits) {
  EXPECT_EQ(text_bytes(0), "0 B");
  EXPECT_EQ(text_bytes(1023), "1023 B");
  EXPECT_EQ(text_bytes(1024), "1.00 KiB");
  EXPECT_EQ(text_bytes(1610612736), "1.50 GiB");
  EXPECT_EQ(text_bytes(1024 * 1024 - 1), "1.00 MiB");
  EXPECT_EQ(text_bytes(12900000), "12.3 MiB");
  EXPECT_EQ(text_bytes(-4096), "-4.00 KiB");
  EXPECT_EQ(text_bytes(INT64_MAX), "8.00 EiB");
}

TEST(TextSize, WritesCountsWithThreeDigits) {
  EXPECT_EQ(text_count(0), "0");
  EXPECT_EQ(text_count(999), "999");
  EXPECT_EQ(text_count(0.25), "0.25");
  EXPECT_EQ(text_count(12345), "12.3K");
  EXPECT_EQ(text_count(999999), "1.00M");
  EXPECT_EQ(text_count(124e6), "124M");
  EXPECT_EQ(text_count(1.5e9), "1.50B");
}

TEST(TextSize, FloatingPointOperationsHaveSiPrefixes) {
  EXPECT_EQ(text_flops(12), "12 FLOP");
  EXPECT_EQ(text_flops(43.96e9), "44.0 GFLOP");
  EXPECT_EQ(text_flops(1.5e15), "1.50 PFLOP");
}

TEST(TextSize, WritesDurationsInTwoUnits) {
  EXPECT_EQ(text_duration(0.42), "0.4 s");
  EXPECT_EQ(text_duration(12.4), "12 s");
  EXPECT_EQ(text_duration(59.6), "1 min 0 s");
  EXPECT_EQ(text_duration(200), "3 min 20 s");
  EXPECT_EQ(text_duration(7500), "2 h 5 min");
  EXPECT_EQ(text_duration(273600), "3 d 4 h");
  EXPECT_EQ(text_duration(-1), "?");
  EXPECT_EQ(text_duration(1e300), "11574074074 d 1 h");
}

TEST(Log, ShowsOnlyItsLevelAndAbove) {
  ::testing::internal::CaptureStderr();
  set_log_level(LogLevel::warn);
  log_debug("a");
  log_info("b");
  log_warn("c ", 1);
  log_error("d {}");
  set_log_level(LogLevel::debug);
  log_debug("e");
  set_log_level(LogLevel::off);
  log_error("f");
  set_log_level(LogLevel::info);
  log_info("g");
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "warning: c 1\nerror: d {}\ndebug: e\ng\n");
}

}  // namespace
}  // namespace ingot
