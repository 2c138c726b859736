#include "ingot/train/time_ledger.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "ingot/base/files.h"
#include "tests/support/message.h"
#include "tests/support/paths.h"

namespace ingot::testing {
namespace {

TEST(TimeLedger, DividesTheWallTimeAmongWhatItWentTo) {
  const TemporaryFolder folder;
  // Two kills: steps 3 and 4 are done again, and the second process never came to a step.
  write_file(folder / "times.jsonl", R"({"t":100,"start":0}
{"t":103,"step":1,"seconds":2,"tokens":64,"flops":10}
{"t":105,"step":2,"seconds":2,"tokens":64,"flops":10}
{"t":106,"kind":"saving","seconds":1}
{"t":108.5,"step":3,"seconds":2,"tokens":64,"flops":10,"within":{"data":0.5}}
{"t":110.5,"step":4,"seconds":2,"tok

{"t":120,"start":2}

{"t":130,"start":2}
{"t":134,"step":3,"seconds":2,"tokens":64,"flops":10}
{"t":136,"step":4,"seconds":2,"tokens":64,"flops":10}
{"t":140,"kind":"evaluating","seconds":3}
)");
  const Goodput time = goodput_of(folder / "times.jsonl");
  EXPECT_EQ(time.processes, 3);
  EXPECT_EQ(time.wall, 40);
  EXPECT_EQ(time.useful, 8);
  EXPECT_EQ(time.repeated, 2);  // the line of step 4 was cut short: its time counts as down
  EXPECT_EQ(time.starting, 1 + 0 + 2);
  EXPECT_EQ(time.down, (120 - 108.5) + 10);
  EXPECT_EQ(time.kinds.at("saving"), 1);
  EXPECT_EQ(time.kinds.at("data"), 0.5);
  EXPECT_EQ(time.kinds.at("evaluating"), 3);
  EXPECT_EQ(time.flops, 40);
  EXPECT_EQ(time.tokens, 256);
  const double known = time.useful + time.repeated + time.starting + time.down + 4.5;
  EXPECT_DOUBLE_EQ(known + time.other, time.wall);
  EXPECT_DOUBLE_EQ(time.share(), 8.0 / 40);
}

TEST(TimeLedger, WhatItWritesAddsUpToTheWallTime) {
  const TemporaryFolder folder;
  const double began = now_seconds();
  TimeLedger ledger(folder / "times.jsonl", 0, began);
  struct Slow : Observer {
    void after_step(const TrainState&, const StepReport&) override {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
  } slow;
  Timed timed(slow, "saving", ledger);
  for (int64_t step = 1; step <= 3; ++step) {
    const double start = now_seconds();
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    ledger.within_step("data", 0.01);
    StepReport report;
    report.step = step;
    report.seconds = now_seconds() - start;
    ledger.after_step({}, report);
    timed.after_step({}, report);
  }
  const Goodput time = goodput_of(folder / "times.jsonl");
  EXPECT_GE(time.useful, 3 * 0.02 - 1e-6);
  EXPECT_NEAR(time.kinds.at("data"), 0.03, 1e-6);
  EXPECT_GE(time.kinds.at("saving"), 0.06 - 1e-3);
  EXPECT_LE(time.other, 0.02 + 0.2 * time.wall);
  EXPECT_EQ(time.down, 0);
}

TEST(TimeLedger, AnEmptyOneHasNoTimeAndAnAbsentOneIsAnError) {
  const TemporaryFolder folder;
  write_file(folder / "times.jsonl", "nonsense\n[]\n{\"t\":1}\n");
  EXPECT_EQ(goodput_of(folder / "times.jsonl").wall, 0);
  EXPECT_EQ(goodput_of(folder / "times.jsonl").share(), 0);
  EXPECT_THAT(message_of(ErrorKind::io, [&] { goodput_of(folder / "absent"); }),
              ::testing::HasSubstr("absent"));
  EXPECT_THAT(message_of(ErrorKind::io, [&] { TimeLedger(folder / "no/times.jsonl", 0, 0); }),
              ::testing::HasSubstr("cannot be opened for appending"));
}

}  // namespace
}  // namespace ingot::testing
