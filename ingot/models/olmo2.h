#pragma once

#include "ingot/models/architecture.h"

namespace ingot {

// OLMo Team 2024, arXiv:2501.00656: norms on what each half adds, and on all queries and all keys.
Architecture olmo2_architecture();

}  // namespace ingot
