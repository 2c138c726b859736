#pragma once

#include <functional>

#include "ingot/tensor/tensor.h"

namespace ingot {

// Runs `run(x)` without keeping its activations; the backward runs it again with history and walks
// that. Gradients of leaves used inside (the block's parameters) are added into them then, so this
// works under backward(), not gradients(). `run` must give the same result both times: randomness
// comes from counters, so dropout does. Chen et al. 2016, "Training Deep Nets with Sublinear Memory
// Cost", arXiv:1604.06174.
Tensor recomputed(const std::function<Tensor(const Tensor&)>& run, const Tensor& x);
// The same for several results. Those that are no function of x for the backward (indices) get no
// gradient, whatever history they carry.
TensorList recomputed(const std::function<TensorList(const Tensor&)>& run, const Tensor& x);

}  // namespace ingot
