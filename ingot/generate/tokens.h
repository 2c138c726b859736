#pragma once

#include <cstdint>
#include <vector>

namespace ingot {

using Tokens = std::vector<int64_t>;  // the ids of a text

}  // namespace ingot
