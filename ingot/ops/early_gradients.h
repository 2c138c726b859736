#pragma once

#include <string_view>

#include "ingot/autograd/record.h"

namespace ingot {

// The formula of a scalar whose gradients are known before its backward begins: it only scales
// them by dy. `grads` has one entry per x, undefined where x needs none. They are given away, not
// copied, so a leaf takes the buffer as its own; where the backward is recorded it walks copies,
// whose second derivative is refused.
Formula early_gradients(std::string_view op, const TensorList& xs, const TensorList& grads);

}  // namespace ingot
