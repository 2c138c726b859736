#pragma once

#include "ingot/models/architecture.h"

namespace ingot {

// Jiang et al. 2023, arXiv:2310.06825: Llama with a sliding window in every layer.
Architecture mistral_architecture();

}  // namespace ingot
