#pragma once

#include "ingot/kernels/optim.h"

namespace ingot::kernels {

// The dynamic map of 8 bits, ascending: for i = 0 … 6 the midpoints of 2^i (unsigned: 2^(i+1))
// equal intervals of [0.1, 1] times 10^(i−6), with both signs if signed, and 0 and 1. Dettmers
// 2016, arXiv:1511.04561. The values are those that bitsandbytes stores: midpoints of intervals
// that PyTorch computes in f32, eight at a time.
const float* dynamic_map(bool is_signed);  // 256 values
inline constexpr int signed_zero_code = 127;

// A moment between updates: codes u8 [N], and for each block of `block` elements the largest
// magnitude, of p's type. value = map[code]·scale
struct Moment8bit {
  View codes;
  View scales;
};

// adam() with L2 and AMSGrad left out, on moments of 8 bits: m (signed map) and v (unsigned). The
// weights move by the new moments before these are rounded to the nearest value of the map (ties:
// the smaller code; a negative m never becomes 0). block: at most 4096
void adam_8bit(const Cpu& on, const AdamNumbers& numbers, int64_t block, const ConstView& g,
               const View& p, const Moment8bit& m, const Moment8bit& v, const View& rounded);

}  // namespace ingot::kernels
