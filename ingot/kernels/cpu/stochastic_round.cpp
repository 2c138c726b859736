#include "ingot/kernels/stochastic_round.h"

#include <bit>

#include "ingot/base/half.h"
#include "ingot/kernels/cpu/parallel.h"

namespace ingot::kernels {
namespace {

constexpr int64_t grain = 4096;  // elements, a multiple of a block's four words

BF16 rounded(float x, uint32_t word) {
  const auto bits = std::bit_cast<uint32_t>(x);
  if ((bits & 0x7f800000U) == 0x7f800000U) {
    return BF16(x);
  }
  // The fraction that is cut off, plus a uniform number, carries with the right probability. A
  // carry beyond the largest number would make infinity: it stays.
  const uint32_t up = (bits + (word & 0xffffU)) & 0xffff0000U;
  BF16 out;
  out.bits = static_cast<uint16_t>(((up & 0x7f800000U) == 0x7f800000U ? bits : up) >> 16);
  return out;
}

}  // namespace

void round_stochastically(const Cpu&, const ConstView& x, const RandomKey& key, const View& y) {
  const auto* from = static_cast<const float*>(x.data);
  auto* to = static_cast<BF16*>(y.data);
  const Philox random(key);
  parallel_for(x.shape.elements(), grain, [&](int64_t begin, int64_t end) {
    for (int64_t block = begin; block < end; block += 4) {
      const PhiloxBlock words = random.block(static_cast<uint64_t>(block / 4));
      for (int64_t i = block; i < std::min(end, block + 4); ++i) {
        to[i] = rounded(from[i], words[static_cast<size_t>(i - block)]);
      }
    }
  });
}

}  // namespace ingot::kernels
