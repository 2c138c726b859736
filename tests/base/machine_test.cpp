#include <gtest/gtest.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <functional>

#include "ingot/base/cpu_features.h"
#include "ingot/base/files.h"
#include "ingot/base/signals.h"

namespace ingot {
namespace {

#if defined(__x86_64__)
// The kernel's own reading of the processor.
TEST(CpuFeatures, AgreeWithTheKernel) {
  const std::string about = read_file("/proc/cpuinfo");
  const size_t start = about.find("\nflags");
  const std::string flags = about.substr(start, about.find('\n', start + 1) - start) + " ";
  const auto has = [&](const std::string& flag) {
    return flags.find(" " + flag + " ") != std::string::npos;
  };
  const CpuFeatures f = cpu_features();
  EXPECT_EQ(f.avx2, has("avx2"));
  EXPECT_EQ(f.fma, has("fma"));
  EXPECT_EQ(f.f16c, has("f16c"));
  EXPECT_EQ(f.avx512f, has("avx512f"));
  EXPECT_EQ(f.avx512bw, has("avx512bw"));
  EXPECT_EQ(f.avx512vl, has("avx512vl"));
  EXPECT_EQ(f.avx512_vnni, has("avx512_vnni"));
  EXPECT_EQ(f.avx512_bf16, has("avx512_bf16"));
  EXPECT_EQ(f.avx512_fp16, has("avx512_fp16"));
  EXPECT_EQ(f.avx_vnni, has("avx_vnni"));
  EXPECT_EQ(f.amx_tile, has("amx_tile"));
  EXPECT_EQ(f.amx_bf16, has("amx_bf16"));
  EXPECT_EQ(f.amx_int8, has("amx_int8"));
}
#endif

TEST(Machine, TellsCoresAndMemory) {
  const Machine m = machine();
  EXPECT_FALSE(m.model.empty());
  EXPECT_GE(m.cores_usable, 1);
  EXPECT_LE(m.cores_usable, m.cores_total);
  EXPECT_GT(m.memory_bytes, int64_t{1} << 28);
  EXPECT_GT(m.memory_available_bytes, 0);
  EXPECT_LE(m.memory_available_bytes, m.memory_bytes);
}

// Runs `f` in a process of its own and gives its wait status.
int status_of_child(const std::function<void()>& f) {
  const pid_t child = ::fork();
  if (child == 0) {
    f();
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return status;
}

TEST(Machine, CountsOnlyTheCoresItMayRunOn) {
  const int status = status_of_child([] {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(static_cast<size_t>(::sched_getcpu()), &one);
    ::sched_setaffinity(0, sizeof(one), &one);
    ::_exit(machine().cores_usable == 1 ? 0 : 1);
  });
  EXPECT_EQ(status, 0);
}

TEST(StopSignals, TurnTheFirstSignalIntoARequest) {
  for (const int signal : {SIGINT, SIGTERM}) {
    const StopSignals signals;
    EXPECT_FALSE(stop_requested());
    std::raise(signal);
    EXPECT_TRUE(stop_requested());
  }
  EXPECT_FALSE(stop_requested());
}

TEST(StopSignals, LetTheSecondSignalEndTheProcess) {
  const int status = status_of_child([] {
    const StopSignals signals;
    std::raise(SIGTERM);
    std::raise(SIGINT);
    ::_exit(3);
  });
  EXPECT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(WTERMSIG(status), SIGINT);
}

TEST(StopSignals, PutTheFormerHandlersBack) {
  const int status = status_of_child([] {
    { const StopSignals signals; }
    std::raise(SIGTERM);
    ::_exit(3);
  });
  EXPECT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(WTERMSIG(status), SIGTERM);
}

}  // namespace
}  // namespace ingot
