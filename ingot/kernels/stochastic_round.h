#pragma once

#include "ingot/base/philox.h"
#include "ingot/base/view.h"
#include "ingot/device/on_device.h"

namespace ingot::kernels {

// y = x rounded to one of its two neighbours in bf16, to the one away from zero with the
// probability that makes the mean x: element i takes the lower half of word i of the key's stream.
// What is not finite stays so. x: [N] f32, y: [N] bf16, both dense.
void round_stochastically(const Cpu& on, const ConstView& x, const RandomKey& key, const View& y);

}  // namespace ingot::kernels
