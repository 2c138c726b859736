#pragma once

#include <string>
#include <vector>

#include "ingot/nn/module.h"

namespace ingot::nn {

// Makes every parameter a leaf that collects gradients but those whose names match one of the
// patterns (see TensorDict::select), and returns the ones that do. Throws Error(config) naming a
// pattern that matches nothing, or where nothing is left to train.
TensorDict freeze(Module& module, const std::vector<std::string>& patterns);

}  // namespace ingot::nn
