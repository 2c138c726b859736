#pragma once

#include "ingot/models/architecture.h"

namespace ingot {

// Hugging Face 2025, SmolLM3: Llama in which every fourth layer does not rotate.
Architecture smollm3_architecture();

}  // namespace ingot
