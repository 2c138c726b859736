#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "tests/cli/program.h"

namespace ingot::testing {

inline bool has_checkpoint(const std::filesystem::path& run) {
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator(run / "checkpoints", none)) {
    if (entry.path().extension() != ".tmp") {
      return true;
    }
  }
  return false;
}

// What a run leaves is the same, however often it was interrupted: the weights to the last bit, and
// a log with every step and every evaluation once.
inline void expect_same_run(const std::filesystem::path& disturbed,
                            const std::filesystem::path& whole, int64_t steps) {
  EXPECT_EQ(model_bytes(disturbed), model_bytes(whole));
  EXPECT_FALSE(model_bytes(whole).empty());
  for (const char* field : {"loss", "grad_norm", "lr", "tokens", "validation_loss"}) {
    EXPECT_EQ(logged(disturbed, field), logged(whole, field)) << field;
  }
  EXPECT_EQ(logged(whole, "loss").size(), static_cast<size_t>(steps));
}

// Lines of the log of a run: how far it is.
inline int64_t progress_of(const std::filesystem::path& run) {
  const std::string log = content(run / "log.jsonl");
  return std::count(log.begin(), log.end(), '\n');
}

struct Torture {
  Words settings;      // --set of the recipe
  int64_t steps = 24;  // of the run
  int64_t every = 1;   // between checkpoints
  int kills = 6;
  unsigned seed = 1;
};

inline bool is_saving(const std::filesystem::path& run) {
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator(run / "checkpoints", none)) {
    if (entry.path().extension() == ".tmp") {
      return true;
    }
  }
  return false;
}

// Lets a process go on for a few steps, or none, and kills it a few milliseconds later: of three
// kills one at the start, one anywhere, one while a checkpoint is being written. Returns whether it
// was still alive.
inline bool kill_somewhere(Child& child, const std::filesystem::path& run, int kill,
                           std::mt19937& random) {
  const auto drawn = [&](int below) { return static_cast<int>(random() % below); };
  if (kill % 3 != 0) {
    const int64_t target = progress_of(run) + 1 + drawn(4);
    while (child.running() && progress_of(run) < target) {
      std::this_thread::sleep_for(std::chrono::microseconds(200));
    }
  }
  while (kill % 3 == 2 && child.running() && !is_saving(run)) {
    std::this_thread::yield();
  }
  std::this_thread::sleep_for(std::chrono::microseconds(drawn(kill % 3 == 0 ? 40000 : 3000)));
  child.send(SIGKILL);
  return child.wait().signal == SIGKILL;
}

// Trains undisturbed, then again with `kill -9` at random moments, and compares.
inline void expect_survives(const Torture& torture) {
  const Workplace work;
  Words settings;
  for (const std::string& setting :
       joined(torture.settings, {"train.steps=" + std::to_string(torture.steps),
                                 "checkpoint.every=" + std::to_string(torture.every)})) {
    settings.insert(settings.end(), {"--set", setting});
  }
  ASSERT_EQ(work.run(work.train("whole", settings)).code, 0);
  const auto arguments = [&] {
    const bool begun = has_checkpoint(work / "run");
    return work.train("run", joined(settings, begun ? Words{"--resume"} : Words{}));
  };
  std::mt19937 random(torture.seed);
  int killed = 0;
  for (int kill = 0; kill < torture.kills; ++kill) {
    Child child(work.path(), arguments());
    killed += kill_somewhere(child, work / "run", kill, random) ? 1 : 0;
  }
  EXPECT_GE(killed, torture.kills / 2);  // the others came after the end
  const Outcome last = work.run(arguments());
  ASSERT_EQ(last.code, 0) << last.err;
  expect_same_run(work / "run", work / "whole", torture.steps);
  for (const auto& entry : std::filesystem::recursive_directory_iterator(work / "run")) {
    EXPECT_EQ(entry.path().string().find(".tmp"), std::string::npos) << entry.path();
  }
}

}  // namespace ingot::testing
