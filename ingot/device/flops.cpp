#include "ingot/device/flops.h"

namespace ingot {
namespace {

thread_local int64_t count = 0;

}  // namespace

void count_flops(int64_t flops) { count += flops; }
int64_t counted_flops() { return count; }
void reset_flops() { count = 0; }

}  // namespace ingot
