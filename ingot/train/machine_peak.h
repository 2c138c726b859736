#pragma once

#include "ingot/base/dtype.h"

namespace ingot {

// The machine's limits, measured and not taken from a data sheet. Each takes about a third of a
// second.

// Floating-point operations per second of the fastest large matrix product of `dtype` that this
// program runs on this machine now: the denominator of MFU (Chowdhery et al. 2022,
// arXiv:2204.02311, appendix B).
double measured_peak_flops(DType dtype);

// Bytes per second between memory and all cores, over arrays that no cache holds.
struct MemoryBandwidth {
  double read = 0;    // reading alone: the limit of decoding, which reads every weight
  double update = 0;  // in place, each byte counted as it is read and as it is written: of training
};
MemoryBandwidth measured_bandwidth();

}  // namespace ingot
