#pragma once

#include "ingot/kernels/conv.h"

namespace ingot::kernels {

// Through oneDNN in f32 or bf16 (weight gradients of bf16 in f32); false where it has no
// implementation for the type on this processor.
bool conv_onednn(const ConstView& x, const ConstView& w, const ConstView& bias,
                 const ConvSteps& steps, const View& y);
bool conv_input_gradient_onednn(const ConstView& dy, const ConstView& w, const ConvSteps& steps,
                                const View& dx);
bool conv_weight_gradient_onednn(const ConstView& dy, const ConstView& x, const ConvSteps& steps,
                                 const View& dw);

// Plain loops in f64.
void conv_f64(const ConstView& x, const ConstView& w, const ConstView& bias, const ConvSteps& steps,
              const View& y);
void conv_input_gradient_f64(const ConstView& dy, const ConstView& w, const ConvSteps& steps,
                             const View& dx);
void conv_weight_gradient_f64(const ConstView& dy, const ConstView& x, const ConvSteps& steps,
                              const View& dw);

}  // namespace ingot::kernels
