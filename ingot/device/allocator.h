#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <mutex>
#include <set>
#include <string_view>
#include <vector>

#include "ingot/base/device.h"

namespace ingot {

// What memory is for; every allocation is counted under one of these.
enum class Purpose : uint8_t { parameters, gradients, optimizer, activations, workspace };
inline constexpr int64_t purposes = 5;
std::string_view name(Purpose purpose);

// Allocations of this thread, while the scope lives, are counted under `purpose`. Without one:
// activations.
class PurposeScope {
 public:
  explicit PurposeScope(Purpose purpose);
  ~PurposeScope();
  PurposeScope(const PurposeScope&) = delete;
  PurposeScope& operator=(const PurposeScope&) = delete;

  static Purpose current();

 private:
  Purpose previous_;
};

struct MemoryStats {
  std::array<int64_t, purposes> live{};     // bytes in use now
  std::array<int64_t, purposes> at_peak{};  // their composition when the total was largest
  int64_t live_total = 0;
  int64_t peak_total = 0;
  int64_t allocations = 0;   // requests served, from the cache or not
  int64_t system_calls = 0;  // requests that went to the operating system
  int64_t reserved = 0;      // bytes held from the operating system, in use or cached
  int64_t on_disk = 0;       // bytes in use in files (Allocator::keep_on_disk), not counted above
  int64_t on_disk_peak = 0;
};

// Bytes are 64-byte aligned; freed blocks are kept and handed out again to requests of the same
// size class, so a training step in its steady state asks nothing of the system. Blocks of 2 MiB
// and more come from mmap with huge pages advised. On the meta device the same sizes are counted,
// and nothing is allocated: a program's peak there is its peak on the real device. Thread-safe.
class Allocator {
 public:
  explicit Allocator(DeviceKind kind) : kind_(kind) {}
  ~Allocator();
  Allocator(const Allocator&) = delete;
  Allocator& operator=(const Allocator&) = delete;

  // The bytes counted for a request: rounded up to 64.
  static int64_t counted(int64_t bytes) { return (bytes + 63) / 64 * 64; }

  // Throws Error(device) with the request and what is live when the system has no more.
  std::byte* allocate(int64_t bytes, Purpose purpose);
  void free(std::byte* data, int64_t bytes, Purpose purpose);

  // Later blocks of 2 MiB and more for `purpose` lie in files without a name below `folder`, which
  // the system writes out and reads back as other memory is needed. They are counted as on_disk.
  // An empty folder: in memory again. Only while no such block is live for that purpose. allocate()
  // then throws Error(io) where the folder has no room or cannot be written.
  void keep_on_disk(Purpose purpose, const std::filesystem::path& folder);

  // Counts live bytes under another purpose.
  void recount(int64_t bytes, Purpose from, Purpose to);

  MemoryStats stats() const;
  void reset_peak();     // the peak becomes what is live now
  void release_cache();  // gives cached blocks back to the system

 private:
  bool goes_to_disk(int64_t bytes, Purpose purpose) const;
  void count(int64_t bytes, Purpose purpose, int64_t sign);
  std::byte* take(int64_t block);
  std::byte* take_file(int64_t block, Purpose purpose);

  DeviceKind kind_;
  mutable std::mutex mutex_;
  MemoryStats stats_;
  std::map<int64_t, std::vector<std::byte*>> cache_;  // block size → free blocks
  std::array<std::filesystem::path, purposes> folders_;
  std::array<int64_t, purposes> large_{};  // bytes in use of blocks that could lie in files
  std::set<std::byte*> in_files_;          // blocks, in use or free
  std::map<int64_t, std::vector<std::byte*>> file_cache_;  // block size → free ones of these
};

// The allocator of a device: the device table is this function's.
Allocator& allocator(Device device);

}  // namespace ingot
