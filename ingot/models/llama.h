#pragma once

#include "ingot/models/architecture.h"

namespace ingot {

// Touvron et al. 2023, arXiv:2302.13971; grouped heads and stretched rotary angles as in Llama 2
// and 3.
Architecture llama_architecture();

}  // namespace ingot
