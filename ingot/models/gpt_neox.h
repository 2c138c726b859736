#pragma once

#include "ingot/models/architecture.h"

namespace ingot {

// Black et al. 2022, arXiv:2204.06745: both halves of a layer read its input, a part of each head
// rotates. Queries, keys and values alternate head by head in one map.
Architecture gpt_neox_architecture();

}  // namespace ingot
