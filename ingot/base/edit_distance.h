#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace ingot {

// The least number of letters to insert, delete, replace or swap with their neighbour that turns
// `a` into `b` (optimal string alignment). O(|a| |b|) time.
int64_t edit_distance(std::string_view a, std::string_view b);

// The word of `words` at the least edit distance from `word`, the earliest of equals; "" of none.
std::string nearest_word(std::string_view word, std::span<const std::string> words);

// The same for dotted paths, where the right last part in the wrong group is a near miss too:
// "beta1" finds "optim.beta1".
std::string nearest_path(std::string_view path, std::span<const std::string> paths);

}  // namespace ingot
