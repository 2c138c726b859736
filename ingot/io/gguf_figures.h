#pragma once

#include <filesystem>
#include <map>
#include <string>

namespace ingot {

// Numbers about a GGUF file that are known once it is written: set to 0 in its metadata before
// (GgufValue{0.0}), filled in afterwards. The file must be one that nobody else reads yet. Throws
// Error(format) where a key is not there as an f64.
void fill_gguf_figures(const std::filesystem::path& path,
                       const std::map<std::string, double>& figures);

}  // namespace ingot
