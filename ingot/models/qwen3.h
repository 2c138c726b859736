#pragma once

#include "ingot/models/architecture.h"

namespace ingot {

// Yang et al. 2025, arXiv:2505.09388: Qwen2 without biases, with a norm on each head of queries and
// keys.
Architecture qwen3_architecture();

}  // namespace ingot
