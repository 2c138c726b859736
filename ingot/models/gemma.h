#pragma once

#include "ingot/models/architecture.h"

namespace ingot {

// Gemma Team 2024, arXiv:2403.08295: embeddings times sqrt(width), gains stored as their difference
// from 1, GELU gates.
Architecture gemma_architecture();

}  // namespace ingot
