#pragma once

namespace ingot {

// What `--version` prints, and what scores say they were made by.
inline constexpr const char* engine_version = "ingot 0.1.0";

}  // namespace ingot
