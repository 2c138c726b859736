#pragma once

#include "ingot/models/architecture.h"

namespace ingot {

// Gemma Team 2025, arXiv:2503.19786, the text model: five windowed layers with rotation of their
// own to a global one, norms of queries and keys.
Architecture gemma3_architecture();

}  // namespace ingot
