#include "tests/cli/resume.h"

#include <functional>

#include "ingot/io/checkpoint.h"

namespace ingot::testing {
namespace {

using ::testing::HasSubstr;

class Resume : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const std::string reason = no_program(); !reason.empty()) {
      GTEST_SKIP() << reason;
    }
  }
};

TEST_F(Resume, AfterKillsItEndsAsIfUndisturbedInFloat) {
  expect_survives({.settings = {"dtype=f32"}, .every = 1, .seed = 1});
}

TEST_F(Resume, AfterKillsItEndsAsIfUndisturbedInHalfPrecisionWithDropout) {
  expect_survives({.settings = {"dtype=bf16", "model.dropout=0.1", "train.accumulate=2"},
                   .every = 2,
                   .seed = 2});
}

TEST_F(Resume, AfterKillsItEndsAsIfUndisturbedWithRareCheckpoints) {
  expect_survives({.settings = {"model.architecture=gpt2", "optim.kind=sgd", "optim.momentum=0.9",
                                "train.recompute=true"},
                   .every = 3,
                   .seed = 3});
}

void expect_stops_and_continues(int signal) {
  const Workplace work;
  const Words settings = {"--set", "train.steps=800", "--set", "checkpoint.every=0",
                          "--set", "evaluate.every=0"};
  ASSERT_EQ(work.run(work.train("whole", settings)).code, 0);
  Child child(work.path(), joined({"train", "tiny.toml", "--no-speed", "--run", "run"}, settings));
  while (child.running() && progress_of(work / "run") < 5) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  child.send(signal);
  const Outcome stopped = child.wait();
  EXPECT_EQ(stopped.code, 130) << stopped.err;
  EXPECT_THAT(stopped.err, HasSubstr("stopped at step "));
  EXPECT_THAT(stopped.err, HasSubstr("saved; continue with --resume"));
  EXPECT_LT(progress_of(work / "run"), 800);

  const Outcome rest =
      work.run(joined({"train", "tiny.toml", "--no-speed", "--run", "run", "--resume"}, settings));
  EXPECT_EQ(rest.code, 0) << rest.err;
  EXPECT_THAT(rest.err, HasSubstr("continuing at step "));
  EXPECT_THAT(rest.err, HasSubstr(" matches"));
  expect_same_run(work / "run", work / "whole", 800);
}

TEST_F(Resume, CtrlCSavesAndStopsAndTheRunContinuesBitForBit) {
  expect_stops_and_continues(SIGINT);
}

TEST_F(Resume, ATerminateSignalSavesAndStopsToo) { expect_stops_and_continues(SIGTERM); }

TEST_F(Resume, ASecondProcessCannotTrainInTheSameFolder) {
  const Workplace work;
  const Words settings = {"--set", "train.steps=100000", "--set", "checkpoint.every=0"};
  Child child(work.path(), work.train("run", settings));
  while (child.running() && progress_of(work / "run") < 1) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  const Outcome second = work.run(work.train("run", joined(settings, {"--resume"})));
  EXPECT_EQ(second.code, 2);
  EXPECT_EQ(
      second.err,
      "ingot: run: another process is training in it; wait for it, or choose another --run\n");
  child.send(SIGKILL);
  child.wait();
}

TEST_F(Resume, AFinishedRunStaysAsItIs) {
  const Workplace work;
  ASSERT_EQ(work.run(work.train("run")).code, 0);
  const std::string log = content(work / "run/log.jsonl");
  const std::string model = model_bytes(work / "run");
  const Outcome again = work.run(work.train("run", {"--resume"}));
  EXPECT_EQ(again.code, 0) << again.err;
  EXPECT_EQ(content(work / "run/log.jsonl"), log);
  EXPECT_EQ(model_bytes(work / "run"), model);
}

TEST_F(Resume, WhatOnlyDecidesWhenToSaveOrMeasureOrHowMuchToKeepMayChange) {
  const Workplace work;
  const Words half = {"--set", "dtype=bf16", "--set", "model.layers=2"};
  ASSERT_EQ(work.run(work.train("whole", half)).code, 0);
  ASSERT_EQ(work.run(work.train("run", half)).code, 0);
  std::filesystem::remove_all(work / "run/checkpoints/step-00000006");
  std::filesystem::remove_all(work / "run/model");
  const Outcome rest = work.run(work.train(
      "run", joined(half, {"--resume", "--set", "checkpoint.every=1", "--set", "checkpoint.keep=1",
                           "--set", "train.recompute=true", "--set", "sample.tokens=0"})));
  EXPECT_EQ(rest.code, 0) << rest.err;
  expect_same_run(work / "run", work / "whole", 6);
}

TEST_F(Resume, TwoRunsOfARecipeAreEqualToTheLastBit) {
  const Workplace work;
  const Words settings = {"--set", "dtype=bf16", "--set", "model.dropout=0.1"};
  ASSERT_EQ(work.run(work.train("a", settings)).code, 0);
  ASSERT_EQ(work.run(work.train("b", settings)).code, 0);
  expect_same_run(work / "a", work / "b", 6);
  ASSERT_EQ(work.run(work.train("c", joined(settings, {"--set", "seed=2"}))).code, 0);
  EXPECT_NE(model_bytes(work / "c"), model_bytes(work / "a"));
}

TEST_F(Resume, AfterKillsDuringForegroundSavesToo) {
  expect_survives({.settings = {"checkpoint.background=false", "checkpoint.best=true",
                                "checkpoint.keep_every=5", "evaluate.every=2"},
                   .every = 1,
                   .seed = 4});
}

// A running process is asked for a checkpoint, and goes on.
void expect_saves_when(const std::function<void(const Child&, const Workplace&)>& ask) {
  const Workplace work;
  const Words settings = {"--set", "train.steps=4000", "--set", "checkpoint.every=0",
                          "--set", "evaluate.every=0"};
  Child child(work.path(), joined({"train", "tiny.toml", "--no-speed", "--run", "run"}, settings));
  while (child.running() && progress_of(work / "run") < 5) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  ask(child, work);
  const auto saved = [&] { return checkpoint_steps(work / "run/checkpoints").back() > 0; };
  while (child.running() && !saved()) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  ASSERT_TRUE(saved());
  const int64_t then = progress_of(work / "run");
  while (child.running() && progress_of(work / "run") < then + 5) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  EXPECT_GE(progress_of(work / "run"), then + 5);
  EXPECT_FALSE(std::filesystem::exists(work / "run/save"));
  child.send(SIGKILL);
  EXPECT_THAT(child.wait().err, HasSubstr(", as requested"));
}

TEST_F(Resume, AFileNamedSaveAsksForACheckpoint) {
  expect_saves_when([](const Child&, const Workplace& work) { put(work / "run/save", ""); });
}

TEST_F(Resume, ASignalAsksForACheckpoint) {
  expect_saves_when([](const Child& child, const Workplace&) { child.send(SIGUSR1); });
}

TEST_F(Resume, BisectNamesTheFirstCheckpointInWhichTwoRunsDiffer) {
  const Workplace work;
  const Words settings = {"--set", "checkpoint.every=1", "--set", "checkpoint.keep=7"};
  ASSERT_EQ(work.run(work.train("a", settings)).code, 0);
  ASSERT_EQ(work.run(work.train("b", settings)).code, 0);
  const Outcome same = work.run({"ckpt", "bisect", "a", "b"});
  EXPECT_EQ(same.code, 0) << same.err;
  EXPECT_THAT(same.out, HasSubstr("the same, bit for bit, at all 7 steps"));
  ASSERT_EQ(work.run(work.train("c", joined({"--branch", "a/checkpoints/step-00000003", "--set",
                                             "schedule.kind=constant"},
                                            settings)))
                .code,
            0);
  const Outcome other = work.run({"ckpt", "bisect", "a", "c", "--json"});
  EXPECT_EQ(other.code, 1) << other.err;
  const auto said = nlohmann::json::parse(other.out);
  EXPECT_EQ(said["last_same"], 3);
  EXPECT_EQ(said["first_differing"], 4);
  EXPECT_THAT(other.out, HasSubstr("parameters: embedding.weight"));
  EXPECT_EQ(work.run({"ckpt", "bisect", "a", "absent"}).code, 3);
  std::filesystem::create_directories(work / "d/checkpoints");
  EXPECT_EQ(work.run({"ckpt", "bisect", "a", "d"}).err,
            "ingot: d: no checkpoints in it; give the folder of a run\n");
}

}  // namespace
}  // namespace ingot::testing
