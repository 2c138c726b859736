#include "ingot/device/storage.h"

#include <gtest/gtest.h>

#include <vector>

#include "ingot/device/flops.h"
#include "ingot/device/on_device.h"

namespace ingot {
namespace {

int64_t live(Purpose purpose, Device device = cpu_device) {
  return allocator(device).stats().live[static_cast<size_t>(purpose)];
}

TEST(Storage, CountsItsBytesUnderTheScopeItWasMadeIn) {
  const int64_t before = live(Purpose::parameters);
  {
    const PurposeScope scope(Purpose::parameters);
    const auto storage = std::make_shared<Storage>(1000, cpu_device);
    EXPECT_EQ(live(Purpose::parameters), before + 1024);
    EXPECT_EQ(storage->bytes(), 1000);
    EXPECT_TRUE(storage->writable());
  }
  EXPECT_EQ(live(Purpose::parameters), before);
}

TEST(Storage, CanBeCountedAsSomethingElse) {
  const int64_t activations = live(Purpose::activations);
  const int64_t gradients = live(Purpose::gradients);
  {
    Storage storage(64, cpu_device);
    storage.count_as(Purpose::gradients);
    EXPECT_EQ(live(Purpose::activations), activations);
    EXPECT_EQ(live(Purpose::gradients), gradients + 64);
  }
  EXPECT_EQ(live(Purpose::gradients), gradients);
}

TEST(Storage, OnMetaHasSizeButNoMemory) {
  const int64_t before = live(Purpose::activations, meta_device);
  Storage storage(int64_t{1} << 40, meta_device);
  EXPECT_EQ(storage.data(), nullptr);
  EXPECT_EQ(live(Purpose::activations, meta_device), before + (int64_t{1} << 40));
}

TEST(Storage, OfForeignMemoryIsReadOnlyAndKeepsItsOwnerAlive) {
  auto owner = std::make_shared<std::vector<std::byte>>(10);
  const std::weak_ptr<std::vector<std::byte>> watch = owner;
  const int64_t before = allocator(cpu_device).stats().live_total;
  {
    const std::byte* data = owner->data();
    Storage storage(data, 10, std::move(owner));
    EXPECT_FALSE(storage.writable());
    EXPECT_FALSE(watch.expired());
    EXPECT_EQ(allocator(cpu_device).stats().live_total, before);
  }
  EXPECT_TRUE(watch.expired());
}

TEST(Storage, VersionCountsWrites) {
  Storage storage(64, cpu_device);
  EXPECT_EQ(storage.version(), 0U);
  storage.bump();
  storage.bump();
  EXPECT_EQ(storage.version(), 2U);
}

TEST(OnDevice, RunsOnCpuAndNotOnMeta) {
  int runs = 0;
  on_device(cpu_device, [&](const auto&) { ++runs; });
  EXPECT_EQ(runs, 1);
  on_device(meta_device, [&](const auto&) { ++runs; });
  EXPECT_EQ(runs, 1);
}

TEST(Flops, AreCountedUntilReset) {
  reset_flops();
  count_flops(100);
  count_flops(20);
  EXPECT_EQ(counted_flops(), 120);
  reset_flops();
  EXPECT_EQ(counted_flops(), 0);
}

}  // namespace
}  // namespace ingot
