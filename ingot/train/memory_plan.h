#pragma once

#include <cstdint>
#include <functional>

#include "ingot/device/allocator.h"

namespace ingot {

// What running something takes, found by running it on the meta device: no memory, no arithmetic,
// the same program.
struct Plan {
  MemoryStats memory;  // peak_total and its composition at_peak; live is what remains afterwards
  int64_t flops = 0;   // of matrix products and attention
};

// Runs `work`, whose tensors must all be on the meta device, and returns its peak above nothing.
Plan plan_of(const std::function<void()>& work);

}  // namespace ingot
