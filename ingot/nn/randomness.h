#pragma once

#include <cstdint>

#include "ingot/base/philox.h"

namespace ingot {

// Which random numbers a forward draws: a function of these counters and of the place that draws,
// so recompute and resume repeat them without any generator state.
struct Randomness {
  uint64_t seed = 0;
  uint64_t step = 0;      // optimizer steps taken, below 2⁴⁰
  uint64_t micro = 0;     // micro-batch within the step, below 2²⁴
  bool training = false;  // without: dropout is the identity

  // The key of one place, a site_named(path).
  RandomKey key(uint64_t site) const { return {seed, step | micro << 40, site}; }
};

}  // namespace ingot
