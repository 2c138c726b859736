#pragma once

#include <cstdint>

namespace ingot {

// The factor of the loss in f16 training, which keeps small gradients above f16's least number.
// Micikevicius et al. 2018, "Mixed precision training", arXiv:1710.03740, section 3.2; the counter
// as in PyTorch.
struct LossScale {
  double scale = 65536;
  double growth = 2;
  double backoff = 0.5;
  int64_t interval = 2000;
  int64_t counter = 0;  // steps without overflow since the last change

  // After a step's gradients are known. With infinite or NaN ones: scale ← scale·backoff and the
  // step is to be skipped (false). Otherwise, after `interval` such steps: scale ← scale·growth.
  bool after_step(bool overflow) {
    if (overflow) {
      scale *= backoff;
      counter = 0;
      return false;
    }
    if (++counter == interval) {
      scale *= growth;
      counter = 0;
    }
    return true;
  }
};

}  // namespace ingot
