#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace ingot {

// Levenshtein distance: the fewest insertions, deletions and substitutions that turn a into b.
int64_t edit_distance(std::string_view a, std::string_view b);

// The candidate nearest to a mistyped name as the end of an error message, "; did you mean 'layers'?", or
// "" where none is near enough (more than a third of the name would have to change).
std::string nearest_hint(std::string_view name, const std::vector<std::string>& candidates);

}  // namespace ingot
