#pragma once

#include "ingot/base/philox.h"
#include "ingot/tensor/tensor.h"

namespace ingot {

// y_i = x_i / (1 − p) with probability 1 − p, else 0. Whether element i is kept depends on (key, i)
// alone: the mask is the same under recompute, on resume and for any number of threads, and is
// never stored. Srivastava et al. 2014.
Tensor dropout(const Tensor& x, double p, const RandomKey& key);

}  // namespace ingot
