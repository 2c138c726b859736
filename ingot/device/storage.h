#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "ingot/base/device.h"
#include "ingot/device/allocator.h"

namespace ingot {

// One allocation on one device, shared by all tensors that view it.
class Storage {
 public:
  // `bytes` from the device's allocator, counted under the current PurposeScope. Contents are
  // undefined.
  Storage(int64_t bytes, Device device);
  // Memory that something else owns (a mapped file): kept alive through `owner`, never written.
  Storage(const std::byte* data, int64_t bytes, std::shared_ptr<const void> owner);
  ~Storage();
  Storage(const Storage&) = delete;
  Storage& operator=(const Storage&) = delete;

  std::byte* data() { return data_; }  // null on the meta device
  int64_t bytes() const { return bytes_; }
  Device device() const { return device_; }
  bool writable() const { return owner_ == nullptr; }
  // Moves the bytes to another purpose's count: an activation that became a gradient.
  void count_as(Purpose purpose);

  // Counts in-place writes; a saved tensor whose storage has moved on is refused by backward.
  uint32_t version() const { return version_.load(std::memory_order_relaxed); }
  void bump() { version_.fetch_add(1, std::memory_order_relaxed); }

 private:
  std::byte* data_;
  int64_t bytes_;
  Device device_;
  Purpose purpose_ = Purpose::parameters;
  std::atomic<uint32_t> version_{0};
  std::shared_ptr<const void> owner_;
};

}  // namespace ingot
