#pragma once

#include "ingot/kernels/elementwise.h"

namespace ingot::kernels {

// gate, up: [N, F] of one floating-point dtype, rows of consecutive elements at any distance;
// y, dy, dgate, dup: [N, F] dense. `activation` is a function without constants.

// y = act(gate) · up
void gated(const Cpu& on, const ConstView& gate, const ConstView& up, Unary activation,
           const View& y);
// dgate = dy · up · act'(gate)    dup = dy · act(gate)
void gated_backward(const Cpu& on, const ConstView& gate, const ConstView& up, const ConstView& dy,
                    Unary activation, const View& dgate, const View& dup);

}  // namespace ingot::kernels
