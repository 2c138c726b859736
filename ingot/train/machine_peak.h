#pragma once

#include "ingot/base/dtype.h"

namespace ingot {

// The machine's two limits, measured and not taken from a data sheet. Each takes about a third of a
// second.

// Floating-point operations per second of the fastest large matrix product of `dtype` that this
// program runs on this machine now: the denominator of MFU (Chowdhery et al. 2022,
// arXiv:2204.02311, appendix B).
double measured_peak_flops(DType dtype);

// Bytes per second between memory and all cores: the faster of reading an array that no cache holds
// and of updating it in place (each byte counted once read, once written).
double measured_bandwidth();

}  // namespace ingot
