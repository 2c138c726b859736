#pragma once

#include "ingot/models/architecture.h"

namespace ingot {

// DeepSeek-AI 2024, arXiv:2412.19437: latent attention; sigmoid weights, chosen with a correction
// bias from the groups whose two best experts have the largest sum. The layers after the last
// predict further tokens (config.mtp); a folder that says num_nextn_predict_layers and has none of
// them is a model without.
Architecture deepseek_v3_architecture();

}  // namespace ingot
