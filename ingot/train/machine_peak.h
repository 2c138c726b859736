#pragma once

#include "ingot/base/dtype.h"

namespace ingot {

// Floating-point operations per second of the fastest large matrix product of `dtype` that this
// program runs on this machine now, measured for about a third of a second: the denominator of MFU
// (Chowdhery et al. 2022, arXiv:2204.02311, appendix B). Ingot measures it instead of trusting a
// data sheet.
double measured_peak_flops(DType dtype);

}  // namespace ingot
