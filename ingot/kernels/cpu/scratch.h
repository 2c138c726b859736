#pragma once

#include <cstddef>
#include <memory>
#include <new>

namespace ingot::kernels {

// 64-byte aligned memory with undefined contents, which grows and stays, so that the steady state
// allocates nothing. Kernels hold one a thread, for blocks of bounded size: no tensor's memory, and
// not in the allocator's books.
class Scratch {
 public:
  // Valid until the next call.
  void* at_least(size_t bytes) {
    if (bytes > size_) {
      data_.reset();
      size_ = 0;
      data_.reset(static_cast<std::byte*>(::operator new(bytes, alignment)));
      size_ = bytes;
    }
    return data_.get();
  }

 private:
  static constexpr std::align_val_t alignment{64};
  struct AlignedDelete {
    void operator()(std::byte* data) const { ::operator delete(data, alignment); }
  };

  std::unique_ptr<std::byte, AlignedDelete> data_;
  size_t size_ = 0;
};

}  // namespace ingot::kernels
