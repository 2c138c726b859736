// File systems that fill up, or may only be read, in the middle of a run: nothing that was saved is
// lost, and the run ends as if undisturbed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mount.h>

#include "tests/cli/resume.h"

namespace ingot::testing {
namespace {

using ::testing::HasSubstr;

const Words settings = {"--set", "train.steps=1000",    "--set", "evaluate.every=0",
                        "--set", "checkpoint.every=20", "--set", "sample.tokens=0"};

class BrokenDisk : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const std::string reason = no_program(); !reason.empty()) {
      GTEST_SKIP() << reason;
    }
    std::filesystem::create_directory(disk());
    if (::mount("none", disk().c_str(), "tmpfs", 0, "size=16m") != 0) {
      GTEST_SKIP() << "needs the right to mount a small file system";
    }
    mounted_ = true;
  }
  void TearDown() override {
    if (mounted_) {
      ::umount2(disk().c_str(), MNT_DETACH);
    }
  }
  std::filesystem::path disk() const { return work / "disk"; }
  std::filesystem::path run() const { return disk() / "run"; }

  // Breaks the file system when the run is a few steps on, and waits for its end.
  template <class F>
  Outcome broken(const F& breaking) {
    Child child(work.path(), work.train("disk/run", settings));
    while (child.running() && progress_of(run()) < 100) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    breaking();
    return child.wait();
  }
  void expect_whole_after_resuming() {
    const Outcome whole = work.run(work.train("whole", settings));
    ASSERT_EQ(whole.code, 0) << whole.err;
    const Outcome resumed = work.run(work.train("disk/run", joined(settings, {"--resume"})));
    ASSERT_EQ(resumed.code, 0) << resumed.err;
    expect_same_run(run(), work / "whole", 1000);
  }

  Workplace work;

 private:
  bool mounted_ = false;
};

TEST_F(BrokenDisk, ThatFillsUpLosesNothing) {
  const std::filesystem::path filler = disk() / "filler";
  const Outcome outcome = broken([&] {
    std::ofstream file(filler, std::ios::binary);
    const std::string block(4096, 'x');
    while (file.write(block.data(), static_cast<std::streamsize>(block.size()))) {
    }
  });
  EXPECT_EQ(outcome.code, 3) << outcome.err;
  std::filesystem::remove(filler);
  expect_whole_after_resuming();
}

// Something that may only be read is mounted over the folder of checkpoints: the system keeps a
// file system with open files from being made so itself.
TEST_F(BrokenDisk, ThatMayOnlyBeReadLosesNothing) {
  const std::filesystem::path checkpoints = run() / "checkpoints";
  bool covered = false;
  const Outcome outcome = broken(
      [&] { covered = ::mount("none", checkpoints.c_str(), "tmpfs", MS_RDONLY, "size=16m") == 0; });
  ASSERT_TRUE(covered);
  EXPECT_EQ(outcome.code, 3) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("Read-only file system"));
  ASSERT_EQ(::umount2(checkpoints.c_str(), MNT_DETACH), 0);
  expect_whole_after_resuming();
}

}  // namespace
}  // namespace ingot::testing
