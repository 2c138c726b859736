#pragma once

#include "ingot/models/architecture.h"

namespace ingot {

// Qwen Team 2025, arXiv:2505.09388: Llama with norms of queries and keys, and narrow experts in
// layers that the config names.
Architecture qwen3_moe_architecture();

}  // namespace ingot
