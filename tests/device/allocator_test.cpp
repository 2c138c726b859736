#include "ingot/device/allocator.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "ingot/base/error.h"
#include "tests/support/paths.h"

namespace ingot {
namespace {

constexpr size_t index_of(Purpose purpose) { return static_cast<size_t>(purpose); }

TEST(Allocator, AlignsEveryBlockTo64Bytes) {
  Allocator memory(DeviceKind::cpu);
  for (const int64_t bytes : {1, 63, 64, 65, 1000, 4097, 100000, 3 << 20}) {
    std::byte* data = memory.allocate(bytes, Purpose::activations);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(data) % 64, 0U) << bytes;
    std::memset(data, 1, static_cast<size_t>(bytes));
    memory.free(data, bytes, Purpose::activations);
  }
}

// Large blocks of that purpose only; they are counted apart, used again, and readable as others.
TEST(Allocator, KeepsAPurposeInFilesThatNoNameLeadsTo) {
  const testing::TemporaryFolder folder;
  Allocator memory(DeviceKind::cpu);
  memory.keep_on_disk(Purpose::optimizer, folder.path());
  constexpr int64_t large = 3 << 20;
  std::byte* first = memory.allocate(large, Purpose::optimizer);
  std::byte* other = memory.allocate(large, Purpose::parameters);
  std::byte* small = memory.allocate(1000, Purpose::optimizer);
  std::memset(first, 7, large);
  EXPECT_EQ(first[large - 1], std::byte{7});
  MemoryStats stats = memory.stats();
  EXPECT_EQ(stats.on_disk, large);
  EXPECT_EQ(stats.live_total, large + 1024);
  EXPECT_EQ(stats.live[index_of(Purpose::optimizer)], 1024);
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
  EXPECT_THROW(memory.keep_on_disk(Purpose::optimizer, {}), Error);  // some are in use
  memory.free(first, large, Purpose::optimizer);
  EXPECT_EQ(memory.allocate(large, Purpose::optimizer), first);
  memory.free(first, large, Purpose::optimizer);
  memory.free(other, large, Purpose::parameters);
  memory.free(small, 1000, Purpose::optimizer);
  stats = memory.stats();
  EXPECT_EQ(stats.on_disk, 0);
  EXPECT_EQ(stats.on_disk_peak, large);
  EXPECT_EQ(stats.live_total, 0);
  memory.keep_on_disk(Purpose::optimizer, {});
  std::byte* again = memory.allocate(large, Purpose::optimizer);
  EXPECT_EQ(memory.stats().on_disk, 0);
  memory.free(again, large, Purpose::optimizer);
}

TEST(Allocator, CountsWhatLiesOnDiskOnTheMetaDeviceToo) {
  Allocator memory(DeviceKind::meta);
  memory.keep_on_disk(Purpose::activations, "anywhere");
  memory.allocate(5 << 20, Purpose::activations);
  memory.recount(5 << 20, Purpose::activations, Purpose::gradients);  // in memory from now on
  EXPECT_EQ(memory.stats().on_disk, 0);
  EXPECT_EQ(memory.stats().on_disk_peak, 5 << 20);
  EXPECT_EQ(memory.stats().live[index_of(Purpose::gradients)], 5 << 20);
  memory.free(nullptr, 5 << 20, Purpose::gradients);
  EXPECT_EQ(memory.stats().live_total, 0);
}

TEST(Allocator, NamesTheFolderThatCannotHoldIt) {
  Allocator memory(DeviceKind::cpu);
  memory.keep_on_disk(Purpose::optimizer, "/nonexistent/folder");
  try {
    memory.allocate(3 << 20, Purpose::optimizer);
    ADD_FAILURE() << "allocated";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::io);
    EXPECT_NE(
        std::string(error.what())
            .find("/nonexistent/folder: cannot hold 3145728 bytes of optimizer: No such file or "
                  "directory; make room, or name another folder in train.offload_to"),
        std::string::npos)
        << error.what();
  }
  EXPECT_EQ(memory.stats().on_disk, 0);
}

TEST(Allocator, AsksTheSystemForNothingInSteadyState) {
  Allocator memory(DeviceKind::cpu);
  const auto step = [&] {  // like a training step: the same sizes, in the same order
    std::vector<std::pair<std::byte*, int64_t>> live;
    for (int64_t i = 1; i <= 50; ++i) {
      live.emplace_back(memory.allocate(i * 12345, Purpose::activations), i * 12345);
    }
    for (const auto& [data, bytes] : live) {
      memory.free(data, bytes, Purpose::activations);
    }
  };
  step();
  const MemoryStats warm = memory.stats();
  EXPECT_GT(warm.system_calls, 0);
  for (int i = 0; i < 10; ++i) {
    step();
  }
  EXPECT_EQ(memory.stats().system_calls, warm.system_calls);
  EXPECT_EQ(memory.stats().reserved, warm.reserved);
  EXPECT_EQ(memory.stats().allocations, 11 * 50);
}

TEST(Allocator, WastesAtMostAnEighthOfABlock) {
  Allocator memory(DeviceKind::cpu);
  for (const int64_t bytes : {100000, 1 << 20, (3 << 20) + 1, 50 << 20}) {
    const int64_t before = memory.stats().reserved;
    std::byte* data = memory.allocate(bytes, Purpose::workspace);
    EXPECT_LE(memory.stats().reserved - before, bytes + bytes / 8 + 64);
    memory.free(data, bytes, Purpose::workspace);
    memory.release_cache();
    EXPECT_EQ(memory.stats().reserved, 0);
  }
}

TEST(Allocator, CountsLiveBytesAndThePeakByPurpose) {
  Allocator memory(DeviceKind::cpu);
  std::byte* weights = memory.allocate(1000, Purpose::parameters);  // counted as 1024
  std::byte* scratch = memory.allocate(100, Purpose::workspace);    // as 128
  memory.free(scratch, 100, Purpose::workspace);
  std::byte* moments = memory.allocate(64, Purpose::optimizer);
  const MemoryStats stats = memory.stats();
  EXPECT_EQ(stats.live_total, 1024 + 64);
  EXPECT_EQ(stats.live[index_of(Purpose::parameters)], 1024);
  EXPECT_EQ(stats.live[index_of(Purpose::workspace)], 0);
  EXPECT_EQ(stats.peak_total, 1024 + 128);
  EXPECT_EQ(stats.at_peak[index_of(Purpose::workspace)], 128);
  EXPECT_EQ(stats.at_peak[index_of(Purpose::optimizer)], 0);
  memory.reset_peak();
  EXPECT_EQ(memory.stats().peak_total, 1024 + 64);
  memory.free(weights, 1000, Purpose::parameters);
  memory.free(moments, 64, Purpose::optimizer);
  EXPECT_EQ(memory.stats().live_total, 0);
}

TEST(Allocator, RecountMovesBytesBetweenPurposes) {
  Allocator memory(DeviceKind::cpu);
  std::byte* data = memory.allocate(100, Purpose::activations);
  memory.recount(100, Purpose::activations, Purpose::gradients);
  EXPECT_EQ(memory.stats().live[index_of(Purpose::activations)], 0);
  EXPECT_EQ(memory.stats().live[index_of(Purpose::gradients)], 128);
  EXPECT_EQ(memory.stats().live_total, 128);
  memory.free(data, 100, Purpose::gradients);
  EXPECT_EQ(memory.stats().live[index_of(Purpose::gradients)], 0);
}

TEST(Allocator, OfMetaCountsTheSameWithoutMemory) {
  Allocator real(DeviceKind::cpu);
  Allocator meta(DeviceKind::meta);
  std::vector<std::pair<std::byte*, int64_t>> held;
  for (const int64_t bytes : {0, 1, 64, 1000, 5 << 20}) {
    held.emplace_back(real.allocate(bytes, Purpose::activations), bytes);
    EXPECT_EQ(meta.allocate(bytes, Purpose::activations), nullptr);
  }
  EXPECT_EQ(meta.stats().live_total, real.stats().live_total);
  EXPECT_EQ(meta.stats().peak_total, real.stats().peak_total);
  EXPECT_EQ(meta.stats().reserved, 0);
  for (const auto& [data, bytes] : held) {
    real.free(data, bytes, Purpose::activations);
  }
  EXPECT_EQ(meta.allocate(int64_t{1} << 60, Purpose::activations), nullptr);  // costs nothing
}

TEST(Allocator, RefusesAnAbsurdSizeAndSaysWhatIsLive) {
  Allocator memory(DeviceKind::cpu);
  std::byte* data = memory.allocate(1000, Purpose::activations);
  try {
    memory.allocate(int64_t{1} << 60, Purpose::gradients);
    FAIL() << "an exbibyte was granted";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::device);
    const std::string message = error.what();
    EXPECT_NE(message.find("the system refused 1152921504606846976 bytes for gradients"),
              std::string::npos)
        << message;
    EXPECT_NE(message.find("1024 bytes are live"), std::string::npos) << message;
  }
  EXPECT_EQ(memory.stats().live_total, 1024);  // the failed request is not counted
  memory.free(data, 1000, Purpose::activations);
  EXPECT_THROW(memory.allocate(-1, Purpose::activations), Error);
}

TEST(Allocator, ServesSeveralThreadsAtOnce) {
  Allocator memory(DeviceKind::cpu);
  std::vector<std::thread> threads;
  std::atomic<int64_t> overwritten{0};
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int64_t i = 0; i < 2000; ++i) {
        const int64_t bytes = 64 * (1 + i % 17);
        std::byte* data = memory.allocate(bytes, Purpose::activations);
        std::memset(data, t, static_cast<size_t>(bytes));
        for (int64_t k = 0; k < bytes; ++k) {
          overwritten += data[k] != static_cast<std::byte>(t) ? 1 : 0;
        }
        memory.free(data, bytes, Purpose::activations);
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(overwritten, 0);
  EXPECT_EQ(memory.stats().live_total, 0);
  EXPECT_EQ(memory.stats().allocations, 4 * 2000);
}

TEST(PurposeScope, AppliesWhileItLivesAndNests) {
  EXPECT_EQ(PurposeScope::current(), Purpose::activations);
  {
    const PurposeScope outer(Purpose::parameters);
    EXPECT_EQ(PurposeScope::current(), Purpose::parameters);
    {
      const PurposeScope inner(Purpose::workspace);
      EXPECT_EQ(PurposeScope::current(), Purpose::workspace);
    }
    EXPECT_EQ(PurposeScope::current(), Purpose::parameters);
    std::thread([] { EXPECT_EQ(PurposeScope::current(), Purpose::activations); }).join();
  }
  EXPECT_EQ(PurposeScope::current(), Purpose::activations);
}

TEST(Purpose, HasAName) {
  EXPECT_EQ(name(Purpose::parameters), "parameters");
  EXPECT_EQ(name(Purpose::workspace), "workspace");
}

}  // namespace
}  // namespace ingot
