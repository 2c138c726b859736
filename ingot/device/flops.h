#pragma once

#include <cstdint>

namespace ingot {

// Floating-point operations that this thread's matrix products and attention have asked for since
// the last reset: 2·M·N·K for a product, forward and backward alike; elementwise work is not
// counted. Counted on the meta device too, which is how `ingot plan` knows a step's cost before
// running it.
void count_flops(int64_t flops);
int64_t counted_flops();
void reset_flops();

}  // namespace ingot
