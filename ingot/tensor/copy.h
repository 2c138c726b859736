#pragma once

#include "ingot/tensor/tensor.h"

namespace ingot {

// Copies and conversions that leave no history; the differentiable ones are in ops/shape.h.

// A new dense tensor with the same elements.
Tensor copy_of(const Tensor& x);
// `x` itself if it is dense, a dense copy otherwise.
Tensor dense(const Tensor& x);
// A dense tensor of another type (rounded to nearest), or `x` itself when it already has it.
Tensor converted(const Tensor& x, DType dtype);
// Moves to another device: to meta, only the shape travels. From meta: Error(device).
Tensor moved(const Tensor& x, Device device);

// target[i] = source[i], converted. Shapes must be equal.
void copy_into(Tensor& target, const Tensor& source);
// target[i] += source[i], added in the accumulator type of target and rounded once.
void add_into(Tensor& target, const Tensor& source);
void fill(Tensor& target, double value);

}  // namespace ingot
