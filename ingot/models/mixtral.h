#pragma once

#include "ingot/models/architecture.h"

namespace ingot {

// Jiang et al. 2024, arXiv:2401.04088: Llama with experts in every layer, the two best
// renormalised.
Architecture mixtral_architecture();

}  // namespace ingot
