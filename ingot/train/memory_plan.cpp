#include "ingot/train/memory_plan.h"

#include "ingot/device/flops.h"

namespace ingot {

Plan plan_of(const std::function<void()>& work) {
  Allocator& meta = allocator(meta_device);
  meta.reset_peak();
  const int64_t flops = counted_flops();
  work();
  return {meta.stats(), counted_flops() - flops};
}

}  // namespace ingot
