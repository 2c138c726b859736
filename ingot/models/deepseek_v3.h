#pragma once

#include "ingot/models/architecture.h"

namespace ingot {

// DeepSeek-AI 2024, arXiv:2412.19437: latent attention; sigmoid weights, chosen with a correction
// bias from the groups whose two best experts have the largest sum. The layers after the last,
// which predict further tokens, are skipped.
Architecture deepseek_v3_architecture();

}  // namespace ingot
