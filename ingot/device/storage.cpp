#include "ingot/device/storage.h"

#include <utility>

namespace ingot {

Storage::Storage(int64_t bytes, Device device)
    : data_(allocator(device).allocate(bytes, PurposeScope::current())),
      bytes_(bytes),
      device_(device),
      purpose_(PurposeScope::current()) {}

Storage::Storage(const std::byte* data, int64_t bytes, std::shared_ptr<const void> owner)
    : data_(const_cast<std::byte*>(data)),  // writable() is false, and Tensor asks before it writes
      bytes_(bytes),
      owner_(std::move(owner)) {}

void Storage::count_as(Purpose purpose) {
  if (owner_ == nullptr) {
    allocator(device_).recount(bytes_, purpose_, purpose);
    purpose_ = purpose;
  }
}

Storage::~Storage() {
  if (owner_ == nullptr) {
    allocator(device_).free(data_, bytes_, purpose_);
  }
}

}  // namespace ingot
