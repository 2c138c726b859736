#include "ingot/data/shuffle.h"

#include <bit>
#include <utility>

#include "ingot/base/error.h"

namespace ingot {

int64_t permuted(int64_t i, int64_t size, const RandomKey& key) {
  check(i >= 0 && i < size, ErrorKind::argument, "permuted: the index must be in [0, ", size,
        "): got ", i);
  constexpr uint64_t rounds = 8;
  const Philox random(key);
  const auto bits = static_cast<uint64_t>(std::bit_width(static_cast<uint64_t>(size - 1)));
  const uint64_t half = (bits + 1) / 2;
  const uint64_t mask = (uint64_t{1} << half) - 1;
  auto value = static_cast<uint64_t>(i);
  do {
    uint64_t left = value >> half;
    uint64_t right = value & mask;
    for (uint64_t round = 0; round < rounds; ++round) {
      // Block numbers of different rounds differ in their upper bits: right < 2³².
      const uint64_t mixed = random.block(right | round << 32)[0] & mask;
      left = std::exchange(right, left ^ mixed);
    }
    value = left << half | right;
  } while (value >= static_cast<uint64_t>(size));
  return static_cast<int64_t>(value);
}

}  // namespace ingot
