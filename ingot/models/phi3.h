#pragma once

#include "ingot/models/architecture.h"

namespace ingot {

// Abdin et al. 2024, arXiv:2404.14219: Llama with joined maps; longrope stretches its long
// versions.
Architecture phi3_architecture();

}  // namespace ingot
