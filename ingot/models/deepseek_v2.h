#pragma once

#include "ingot/models/architecture.h"

namespace ingot {

// DeepSeek-AI 2024, arXiv:2405.04434: latent attention; softmax weights that are not renormalised;
// a group of experts counts as its best.
Architecture deepseek_v2_architecture();

}  // namespace ingot
