// Philox words by the vector. Included once per Highway target, hence no #pragma once.
#if defined(INGOT_KERNELS_CPU_PHILOX_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef INGOT_KERNELS_CPU_PHILOX_INL_H_
#undef INGOT_KERNELS_CPU_PHILOX_INL_H_
#else
#define INGOT_KERNELS_CPU_PHILOX_INL_H_
#endif

#include <hwy/highway.h>

#include "ingot/base/philox.h"

HWY_BEFORE_NAMESPACE();
namespace ingot::kernels::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// words[4 b + w] = word w of block first + b, for b in [0, blocks). Each 64-bit lane computes one
// block; its counters are the lower halves, for the 32 × 32 → 64 bit products read nothing else.
HWY_INLINE void philox_words(const Philox& random, uint64_t first, int64_t blocks,
                             uint32_t* HWY_RESTRICT words) {
  const hn::ScalableTag<uint64_t> d;
  const hn::Repartition<uint32_t, decltype(d)> d32;
  const hn::Rebind<uint32_t, decltype(d)> half;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto times = [&](auto counter, uint32_t factor) HWY_ATTR {
    return hn::MulEven(hn::BitCast(d32, counter), hn::Set(d32, factor));
  };
  int64_t done = 0;
  for (; done + lanes <= blocks; done += lanes) {
    auto c0 = hn::Iota(d, first + static_cast<uint64_t>(done));
    auto c1 = hn::ShiftRight<32>(c0);
    auto c2 = hn::Set(d, uint64_t{random.stream()[0]});
    auto c3 = hn::Set(d, uint64_t{random.stream()[1]});
    uint32_t k0 = random.key()[0];
    uint32_t k1 = random.key()[1];
    for (int round = 0; round < 10; ++round) {
      const auto a = times(c0, 0xD2511F53U);
      const auto b = times(c2, 0xCD9E8D57U);
      c0 = hn::Xor(hn::Xor(hn::ShiftRight<32>(b), c1), hn::Set(d, uint64_t{k0}));
      c1 = b;
      c2 = hn::Xor(hn::Xor(hn::ShiftRight<32>(a), c3), hn::Set(d, uint64_t{k1}));
      c3 = a;
      k0 += 0x9E3779B9U;
      k1 += 0xBB67AE85U;
    }
    hn::StoreInterleaved4(hn::TruncateTo(half, c0), hn::TruncateTo(half, c1),
                          hn::TruncateTo(half, c2), hn::TruncateTo(half, c3), half,
                          words + 4 * done);
  }
  for (; done < blocks; ++done) {
    const PhiloxBlock block = random.block(first + static_cast<uint64_t>(done));
    for (size_t w = 0; w < 4; ++w) {
      words[4 * done + static_cast<int64_t>(w)] = block[w];
    }
  }
}

}  // namespace ingot::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
